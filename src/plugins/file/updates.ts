/** Dynamic updates of the zones of one server block (RFC 2136): who may, and what is said to them. */
import { type Message, type Name, Rcode, RecordType } from "../../dns/index.ts";
import {
  type BlockSite,
  type CounterFamily,
  type Handler,
  ServiceKey,
  SetupError,
  type Site,
  tsigKeyNamed,
} from "../../plugin/index.ts";
import type { FileZone } from "../../zones/file-zone.ts";
import type { ServedZone } from "../../zones/served-zone.ts";
import { DynamicZone } from "../../zones/updates/dynamic-zone.ts";
import type { ZoneService } from "../../zones/zone-service.ts";

/** What the same block of the next configuration takes over. */
export const ZONE_UPDATES: ServiceKey<ZoneUpdates> = new ServiceKey("zone updates");

interface UpdatedZone {
  readonly served: ServedZone;
  readonly dynamic: DynamicZone;
  readonly keys: readonly Name[];
}

export class ZoneUpdates {
  readonly #site: Site;
  readonly #zones: UpdatedZone[] = [];
  #updates: CounterFamily | undefined;

  constructor(site: Site) {
    this.#site = site;
  }

  get isEmpty(): boolean {
    return this.#zones.length === 0;
  }

  /** @param journal path of the file that updates are written to */
  add(zone: FileZone, journal: string, service: ZoneService, keys: readonly Name[]): DynamicZone {
    const { served } = zone;
    const { log, metrics } = this.#site;
    const damage = metrics
      .counter({
        name: "portolan_zone_journal_damages_total",
        help: "Places where the journal of a zone's updates was found to be damaged.",
        labels: ["zone"],
      })
      .slot(served.apex.toString());
    const dynamic = new DynamicZone({
      served,
      path: journal,
      service,
      log,
      readFile: () => zone.readAgain(),
      onDamage: (places) => damage.add(places),
    });
    this.#zones.push({ served, dynamic, keys });
    this.#updates ??= this.#site.metrics.counter({
      name: "portolan_zone_updates_total",
      help: "Dynamic updates, by what was said to them.",
      labels: ["zone", "rcode"],
    });
    return dynamic;
  }

  /** @throws SetupError for keys that there are not, and where several data planes would each have a zone of their own */
  check(block: BlockSite): void {
    if (block.settings.sockets > 1)
      throw new SetupError("'update' needs one data plane: take 'multisocket' out of the server block");
    for (const { served, keys } of this.#zones) {
      for (const name of keys) tsigKeyNamed(name, block.plugins(), `'update' for zone ${served.spelled}`);
    }
  }

  inherit(former: ZoneUpdates): void {
    for (const { dynamic } of this.#zones) {
      const same = former.#zones.find((zone) => zone.dynamic.journal.path === dynamic.journal.path);
      if (same !== undefined) dynamic.inherit(same.dynamic);
    }
  }

  /** Somebody else may be serving the zones: the journals are not written to. */
  onlyLook(): void {
    for (const { dynamic } of this.#zones) dynamic.onlyLook();
  }

  adopt(): void {
    for (const { dynamic } of this.#zones) void dynamic.adopt();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#zones.map(({ dynamic }) => dynamic.stop()));
  }

  readonly handle: Handler = (query) => {
    const zone = this.#zones.find(({ served }) => served.apex.equals(query.name));
    if (query.type !== RecordType.SOA) return query.reply({ rcode: Rcode.FORMERR });
    if (zone === undefined) return query.reply({ rcode: Rcode.NOTAUTH });
    const { signer } = query.root;
    if (signer === undefined || !zone.keys.some((key) => key.equals(signer))) {
      query.trace?.note(
        signer === undefined ? "the update is not signed" : `the key ${signer} may not change the zone`,
      );
      this.#count(zone.served, Rcode.REFUSED);
      return query.reply({ rcode: Rcode.REFUSED });
    }
    const loaded = zone.served.zone;
    // Signatures and denials would no longer be true.
    if (loaded !== undefined && (loaded.nsec.count > 0 || loaded.nsec3.count > 0)) {
      this.#site.log.warning(`Update of zone "${zone.served.spelled}" refused: the file is signed`);
      this.#count(zone.served, Rcode.REFUSED);
      return query.reply({ rcode: Rcode.REFUSED });
    }
    const message: Message = query.decode();
    return zone.dynamic.update(message).then((rcode) => {
      this.#count(zone.served, rcode);
      return query.reply({ rcode });
    });
  };

  #count({ apex }: ServedZone, rcode: number): void {
    this.#updates?.slot(apex.toString(), RCODE_WORDS.get(rcode) ?? String(rcode)).increment();
  }
}

const RCODE_WORDS: ReadonlyMap<number, string> = new Map(
  Object.entries(Rcode).map(([word, number]) => [number, word]),
);
