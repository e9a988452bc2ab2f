import type { Name, TsigKey } from "../../dns/index.ts";
import {
  Fallthrough,
  type Handler,
  type PlacedPlugin,
  type PluginInstance,
  SetupError,
  type Site,
  type TransferSource,
  tsigKeyNamed,
  type ZoneList,
} from "../../plugin/index.ts";
import type { StreamDialler } from "../../upstream/tcp-connection.ts";
import { readTlsFiles } from "../../upstream/tls-files.ts";
import type { Primary } from "../../zones/primary.ts";
import { SecondaryZone } from "../../zones/secondary-zone.ts";
import { ZoneService } from "../../zones/zone-service.ts";
import { ZoneStore } from "../../zones/zone-store.ts";

export interface SecondaryConfig {
  readonly zones: ZoneList;
  readonly transfer: readonly { readonly address: readonly Primary[] }[];
  readonly tls: { readonly files: readonly string[] } | undefined;
  readonly tls_servername: string | undefined;
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
  readonly #lines: readonly SecondaryConfig[];

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
    this.#lines = lines;
    this.handle = service.handle;
    this.transferSource = service;
    this.#zones = lines.flatMap(({ zones, transfer, key, directory, max_size: size }) => {
      const primaries = transfer.flatMap(({ address }) => address);
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
    const diallers = await this.#diallers();
    for (const zone of this.#zones) {
      const former = this.#predecessors.find(({ served }) => served.apex.equals(zone.served.apex));
      if (former !== undefined) await zone.inherit(former);
    }
    this.#predecessors.length = 0;
    for (const [index, zone] of this.#zones.entries()) await zone.start({ key: keys[index], diallers });
  }

  /** Primaries are not asked, but what a start would refuse is known. */
  async examine(): Promise<void> {
    for (const zone of this.#zones) this.#keyOf(zone);
    await this.#diallers();
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

  /** How to reach the primaries that are asked over TLS. */
  async #diallers(): Promise<ReadonlyMap<Primary, StreamDialler>> {
    const diallers = new Map<Primary, StreamDialler>();
    for (const { transfer, tls, tls_servername: commonName } of this.#lines) {
      const primaries = transfer.flatMap(({ address }) => address).filter(({ isEncrypted }) => isEncrypted);
      if (primaries.length === 0) continue;
      const material = await readTlsFiles(tls?.files ?? [], this.#site);
      const { transferDiallers } = await import("../../upstream/encrypted/transfer-dialler.ts");
      try {
        const dialler = transferDiallers(material);
        for (const primary of primaries) diallers.set(primary, dialler(primary.serverName ?? commonName));
      } catch (error) {
        throw new SetupError(`tls: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    return diallers;
  }

  describeState(): readonly string[] {
    return this.#zones.map((zone) => zone.describe());
  }
}
