import { setImmediate as nextImmediate } from "node:timers/promises";
import { Name, type TsigKey } from "../../dns/index.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import {
  Fallthrough,
  type Handler,
  type PlacedPlugin,
  type PluginFault,
  type PluginInstance,
  SetupError,
  type Site,
  type TransferSource,
  ZoneList,
} from "../../plugin/index.ts";
import { tsigKeyNamed } from "../../plugin/services/tsig-keys.ts";
import { readTlsFiles } from "../../upstream/encrypted/tls-files.ts";
import type { StreamDialler } from "../../upstream/tcp/tcp-connection.ts";
import { faultsOfZones } from "../../zones/serving/zone-faults.ts";
import { ZoneService } from "../../zones/serving/zone-service.ts";
import type { Primary } from "../../zones/transfer/primary.ts";
import { SecondaryZone, type SecondaryZoneOptions } from "../../zones/transfer/secondary-zone.ts";
import { TransferGate } from "../../zones/transfer/transfer-gate.ts";
import { ZoneStore } from "../../zones/transfer/zone-store.ts";
import { Catalogs } from "./catalogs.ts";
import { zoneLimit } from "./config.ts";

export interface SecondaryConfig {
  readonly zones: ZoneList;
  readonly transfer: readonly { readonly address: readonly Primary[] }[];
  readonly tls: { readonly files: readonly string[] } | undefined;
  readonly tls_servername: string | undefined;
  /** Name of a TSIG key. */
  readonly key: Name | undefined;
  /** Whether the zones are catalogs; `members` restricts the names of member zones. */
  readonly catalog: readonly { readonly members: readonly Name[] }[];
  readonly axfr_only: boolean;
  readonly directory: string | undefined;
  /** MiB. */
  readonly max_size: number | undefined;
  readonly fallthrough: Fallthrough;
}

export class SecondaryZones implements PluginInstance {
  readonly handle: Handler;
  readonly transferSource: TransferSource;
  readonly #service: ZoneService;
  readonly #site: Site;
  readonly #zones: readonly SecondaryZone[];
  readonly #predecessors: SecondaryZone[] = [];
  readonly #catalogs: Catalogs;
  #diallers: ReadonlyMap<Primary, StreamDialler> = new Map();
  readonly #lines: readonly SecondaryConfig[];

  constructor(lines: readonly SecondaryConfig[], site: Site) {
    // As with `file`, the last `fallthrough` counts for all zones.
    const through = lines.findLast((line) => line.fallthrough !== Fallthrough.none)?.fallthrough;
    const service = new ZoneService(this, site, through ?? Fallthrough.none);
    const transfers = site.metrics.counter({
      name: "portolan_transfer_in_total",
      help: "SOA queries to primary servers, by outcome.",
      labels: ["zone", "result"],
    });
    this.#service = service;
    this.#site = site;
    this.#lines = lines;
    this.handle = service.handle;
    this.transferSource = service;
    const gate = new TransferGate();
    const { feed } = site;
    const tellOthers: SecondaryZoneOptions["tellOthers"] = (apex, news) => {
      if (feed.role === "follower") {
        if (news === "notified") feed.ask(apex.toString()).catch(() => undefined);
      } else if (news === "transferred") feed.publish(apex.toString());
    };
    feed.receive((apex) => this.#ask(apex));
    feed.answer((apex) => {
      this.#ask(apex);
      return Promise.resolve();
    });
    this.#catalogs = new Catalogs({
      site,
      isServed: (apex) => service.table.get(apex) !== undefined,
      start: (zone) => this.#startMember(zone),
      remove: async ({ served, store }) => {
        service.remove(served);
        await store?.remove(served.apex);
      },
      pause: () => nextImmediate<void>(),
    });
    this.#zones = lines.flatMap(({ zones, transfer, key, directory, max_size: size, catalog, ...line }) => {
      const primaries = transfer.flatMap(({ address }) => address);
      // One data plane writes the files that all read.
      const isKept = directory !== undefined && site.feed.role === "leader";
      const store = isKept ? new ZoneStore(site.resolvePath(directory), site.clock) : undefined;
      const common = {
        service,
        site,
        primaries,
        key,
        limit: zoneLimit(size, site.machine.memoryLimit),
        store,
        transfers,
        gate,
        tellOthers,
        axfrOnly: line.axfr_only,
      };
      const make = (apex: Name): SecondaryZone => new SecondaryZone({ ...common, apex });
      if (catalog.length === 0) return zones.zones.map(make);
      const accepted = new ZoneList(
        catalog.flatMap(({ members }) => (members.length === 0 ? [Name.root] : members)),
      );
      return zones.zones.map(
        (apex) =>
          new SecondaryZone({ ...common, apex, examine: this.#catalogs.add(apex, { accepted, make }) }),
      );
    });
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    for (const { instance } of predecessors) {
      if (instance instanceof SecondaryZones) this.#predecessors.push(...instance.#all);
    }
  }

  async start(): Promise<void> {
    for (const zone of this.#zones) this.#keyOf(zone);
    this.#diallers = await this.#makeDiallers();
    for (const zone of this.#zones) await this.#inheritFormer(zone);
    await this.#catalogs.settled();
    this.#predecessors.length = 0;
    for (const zone of this.#zones) await this.#startZone(zone);
  }

  /** Finds errors that would prevent the start, without contacting primaries. */
  async examine(): Promise<void> {
    for (const zone of this.#zones) this.#keyOf(zone);
    await this.#makeDiallers();
  }

  /** A reload waits for new zones. */
  async warmUp(): Promise<void> {
    await Promise.all(this.#zones.map((zone) => zone.loaded()));
    await this.#catalogs.settled();
    await Promise.all(this.#catalogs.zones().map((zone) => zone.loaded()));
  }

  stop(): void {
    for (const zone of this.#zones) zone.stop();
    this.#catalogs.stop();
    this.#service.stop();
  }

  /** Another data plane has seen a newer version of a zone. */
  #ask(apex: unknown): void {
    this.#all.find(({ served }) => served.apex.toString() === apex)?.ask();
  }

  #keyOf({ key, served }: SecondaryZone): TsigKey | undefined {
    if (key === undefined) return undefined;
    return tsigKeyNamed(key, this.#site.block.plugins(), `'key' for zone ${served.spelled}`);
  }

  /** Connections to the primaries with TLS. */
  async #makeDiallers(): Promise<ReadonlyMap<Primary, StreamDialler>> {
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
        throw new SetupError(`tls: ${messageOf(error)}`);
      }
    }
    return diallers;
  }

  describeState(): readonly string[] {
    return this.#all.map((zone) => zone.describe());
  }

  faults(): readonly PluginFault[] {
    return faultsOfZones(this.#all);
  }

  get #all(): readonly SecondaryZone[] {
    return [...this.#zones, ...this.#catalogs.zones()];
  }

  async #startZone(zone: SecondaryZone): Promise<void> {
    await zone.start({ key: this.#keyOf(zone), diallers: this.#diallers });
  }

  async #startMember(zone: SecondaryZone): Promise<void> {
    await this.#inheritFormer(zone);
    await this.#startZone(zone);
  }

  async #inheritFormer(zone: SecondaryZone): Promise<void> {
    const former = this.#predecessors.find(({ served }) => served.apex.equals(zone.served.apex));
    if (former !== undefined) await zone.inherit(former);
  }
}
