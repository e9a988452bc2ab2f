import type { Name, TsigKey } from "../../dns/index.ts";
import {
  Fallthrough,
  type Handler,
  type HostPort,
  type PlacedPlugin,
  type PluginInstance,
  type Site,
  type TransferSource,
  tsigKeyNamed,
  type ZoneList,
} from "../../plugin/index.ts";
import { upstreamAddress } from "../../upstream/address.ts";
import { SecondaryZone } from "../../zones/secondary-zone.ts";
import { ZoneService } from "../../zones/zone-service.ts";
import { ZoneStore } from "../../zones/zone-store.ts";

export interface SecondaryConfig {
  readonly zones: ZoneList;
  readonly transfer: readonly { readonly address: readonly HostPort[] }[];
  /** Name of a TSIG key. */
  readonly key: Name | undefined;
  readonly directory: string | undefined;
  /** MiB. */
  readonly max_size: number;
  readonly fallthrough: Fallthrough;
}

const MIB = 1024 * 1024;

export class SecondaryZones implements PluginInstance {
  readonly handle: Handler;
  readonly transferSource: TransferSource;
  readonly #service: ZoneService;
  readonly #site: Site;
  readonly #zones: readonly SecondaryZone[];
  readonly #predecessors: SecondaryZone[] = [];

  constructor(lines: readonly SecondaryConfig[], site: Site) {
    // As with `file`, the last `fallthrough` counts for all zones.
    const through = lines.findLast((line) => line.fallthrough !== Fallthrough.none)?.fallthrough;
    const service = new ZoneService(this, site, through ?? Fallthrough.none);
    const transfers = site.metrics.counter({
      name: "portolan_transfer_in_total",
      help: "Questions to primary servers whether a zone changed, by what came of them.",
      labels: ["zone", "result"],
    });
    this.#service = service;
    this.#site = site;
    this.handle = service.handle;
    this.transferSource = service;
    this.#zones = lines.flatMap(({ zones, transfer, key, directory, max_size: size }) => {
      const primaries = transfer
        .flatMap(({ address }) => address)
        .flatMap(({ host, port }) => upstreamAddress(host, port) ?? []);
      // One data plane writes what all read.
      const isKept = directory !== undefined && site.feed.role === "leader";
      const store = isKept ? new ZoneStore(site.resolvePath(directory), site.clock) : undefined;
      return zones.zones.map(
        (apex) =>
          new SecondaryZone({ service, site, apex, primaries, key, limit: size * MIB, store, transfers }),
      );
    });
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    for (const { instance } of predecessors) {
      if (instance instanceof SecondaryZones) this.#predecessors.push(...instance.#zones);
    }
  }

  async start(): Promise<void> {
    const keys = this.#zones.map((zone) => this.#keyOf(zone));
    for (const zone of this.#zones) {
      const former = this.#predecessors.find(({ served }) => served.apex.equals(zone.served.apex));
      if (former !== undefined) await zone.inherit(former);
    }
    this.#predecessors.length = 0;
    for (const [index, zone] of this.#zones.entries()) await zone.start(keys[index]);
  }

  /** Primaries are not asked, but what a start would refuse is known. */
  examine(): Promise<void> {
    for (const zone of this.#zones) this.#keyOf(zone);
    return Promise.resolve();
  }

  /** A reload waits for zones that are new. */
  async warmUp(): Promise<void> {
    await Promise.all(this.#zones.map((zone) => zone.loaded()));
  }

  stop(): void {
    for (const zone of this.#zones) zone.stop();
    this.#service.stop();
  }

  #keyOf({ key, served }: SecondaryZone): TsigKey | undefined {
    if (key === undefined) return undefined;
    return tsigKeyNamed(key, this.#site.block.plugins(), `'key' for zone ${served.spelled}`);
  }

  describeState(): readonly string[] {
    return this.#zones.map((zone) => zone.describe());
  }
}
