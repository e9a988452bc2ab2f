/** Dynamic updates of the zones of one server block (RFC 2136): who may, and what is said to them. */
import { decodeMessage, type Message, type Name, Rcode, RecordType } from "../../dns/index.ts";
import { copyOctets } from "../../dns/octets.ts";
import {
  type BlockSite,
  type CounterFamily,
  type Handler,
  ServiceKey,
  type Site,
  tsigKeyNamed,
} from "../../plugin/index.ts";
import type { FileZone } from "../../zones/files/served-file.ts";
import { ZoneCopies } from "../../zones/serving/copy-set.ts";
import type { ServedZone } from "../../zones/serving/served-zone.ts";
import type { ZoneService } from "../../zones/serving/zone-service.ts";
import { ZoneCopy } from "../../zones/threads/zone-copy.ts";
import { DynamicZone } from "../../zones/updates/dynamic-zone.ts";

/** What the same block of the next configuration takes over. */
export const ZONE_UPDATES: ServiceKey<ZoneUpdates> = new ServiceKey("zone updates");

interface UpdatedZone {
  readonly served: ServedZone;
  readonly keys: readonly Name[];
  /** Where updates are carried out; in a follower that is the leader. */
  readonly dynamic: DynamicZone | undefined;
}

/** What a follower asks the leader to do. */
interface ForwardedUpdate {
  readonly apex: string;
  readonly message: Uint8Array;
}

export class ZoneUpdates {
  readonly #site: Site;
  readonly #zones: UpdatedZone[] = [];
  #updates: CounterFamily | undefined;
  #copies: ZoneCopies | undefined;

  constructor(site: Site) {
    this.#site = site;
    site.feed.answer((question) => this.#forwarded(question as ForwardedUpdate));
  }

  get isEmpty(): boolean {
    return this.#zones.length === 0;
  }

  get #isLeader(): boolean {
    return this.#site.feed.role === "leader";
  }

  /**
   * Lets a zone take updates.
   * @param journal path of the file that they are written to
   * @returns `undefined` in a follower, which has the zone from the leader: it reads no file
   */
  add(zone: FileZone, journal: string, service: ZoneService, keys: readonly Name[]): DynamicZone | undefined {
    const { served } = zone;
    const { log, metrics, feed } = this.#site;
    this.#updates ??= metrics.counter({
      name: "portolan_zone_updates_total",
      help: "Dynamic updates, by what was said to them.",
      labels: ["zone", "rcode"],
    });
    if (!this.#isLeader) {
      this.#zones.push({ served, keys, dynamic: undefined });
      return undefined;
    }
    this.#copies ??= new ZoneCopies(feed);
    this.#copies.add(served);
    service.copies = this.#copies;
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
    this.#zones.push({ served, keys, dynamic });
    return dynamic;
  }

  /** In a follower: takes the zones from the leader. To be called when all have been added. */
  receive(service: ZoneService): void {
    if (this.#isLeader || this.isEmpty) return;
    const { feed, log } = this.#site;
    ZoneCopy.receive(
      feed,
      this.#zones.map(({ served }) => new ZoneCopy(served, service)),
      (error) => log.error(error instanceof Error ? error.message : String(error)),
    );
  }

  /** @throws SetupError for keys that there are not */
  check(block: BlockSite): void {
    for (const { served, keys } of this.#zones) {
      for (const name of keys) tsigKeyNamed(name, block.plugins(), `'update' for zone ${served.spelled}`);
    }
  }

  inherit(former: ZoneUpdates): void {
    for (const { dynamic } of this.#zones) {
      const same = former.#zones.find((zone) => zone.dynamic?.journal.path === dynamic?.journal.path);
      if (same?.dynamic !== undefined) dynamic?.inherit(same.dynamic);
    }
  }

  /** Somebody else may be serving the zones: the journals are not written to. */
  onlyLook(): void {
    for (const { dynamic } of this.#zones) dynamic?.onlyLook();
  }

  adopt(): void {
    for (const { dynamic } of this.#zones) void dynamic?.adopt();
  }

  async stop(): Promise<void> {
    for (const { dynamic } of this.#zones) await dynamic?.stop();
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
    const rcodes =
      zone.dynamic?.update(message) ?? this.#ask(zone.served, copyOctets(query.packet, 0, query.length));
    return rcodes.then((rcode) => {
      this.#count(zone.served, rcode);
      return query.reply({ rcode });
    });
  };

  /** In a follower. */
  async #ask({ apex, spelled }: ServedZone, message: Uint8Array): Promise<number> {
    try {
      const question: ForwardedUpdate = { apex: apex.toString(), message };
      return Number(await this.#site.feed.ask(question));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#site.log.error(`Updates of zone "${spelled}" failed: ${reason}`);
      return Rcode.SERVFAIL;
    }
  }

  /** In the leader. The follower has looked at who asks. */
  async #forwarded({ apex, message }: ForwardedUpdate): Promise<number> {
    const zone = this.#zones.find(({ served }) => served.apex.toString() === apex);
    return (await zone?.dynamic?.update(decodeMessage(message))) ?? Rcode.SERVFAIL;
  }

  #count({ apex }: ServedZone, rcode: number): void {
    this.#updates?.slot(apex.toString(), RCODE_WORDS.get(rcode) ?? String(rcode)).increment();
  }
}

const RCODE_WORDS: ReadonlyMap<number, string> = new Map(
  Object.entries(Rcode).map(([word, number]) => [number, word]),
);
