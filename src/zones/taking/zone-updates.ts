/** Dynamic updates of the zones of one server block (RFC 2136): permissions and responses. */

import { decodeMessage, type Message } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { copyOctets } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { CounterFamily } from "../../lib/metrics/metric-families.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Handler } from "../../plugin/chain/handler.ts";
import { ServiceKey } from "../../plugin/contract/service.ts";
import type { BlockSite, Site } from "../../plugin/contract/site.ts";
import { tsigKeyNamed } from "../../plugin/services/tsig-keys.ts";
import type { FileZone } from "../files/served-file.ts";
import { ZoneCopies } from "../serving/copy-set.ts";
import type { ServedZone } from "../serving/served-zone.ts";
import type { ZoneService } from "../serving/zone-service.ts";
import { ZoneCopy } from "../threads/zone-copy.ts";
import { DynamicZone } from "../updates/dynamic-zone.ts";
import { isKnown, type UpdatePolicy } from "../updates/update-policy.ts";

/** State that the same block of the next configuration takes over. */
export const ZONE_UPDATES: ServiceKey<ZoneUpdates> = new ServiceKey("zone updates");

interface UpdatedZone {
  readonly served: ServedZone;
  readonly options: UpdateOptions;
  /** Applies the updates; a follower leaves that to the leader. */
  readonly dynamic: DynamicZone | undefined;
}

export interface UpdateOptions {
  /** Path of the file for updates; `undefined` to keep them in memory only. */
  readonly journal: string | undefined;
  /** Whether the journal has the whole zone, and replaces the file. */
  readonly isWhole: boolean;
  readonly policy: UpdatePolicy;
  /** Whether a key that `tsig` does not have is an error. */
  readonly needsKeys: boolean;
}

/** A request of a follower to the leader. */
interface ForwardedUpdate {
  readonly apex: string;
  readonly signer: string;
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
   * Lets a zone accept updates.
   * @returns `undefined` in a follower, which gets the zone from the leader: it reads no file
   */
  add(zone: FileZone, service: ZoneService, options: UpdateOptions): DynamicZone | undefined {
    const { served } = zone;
    const { log, metrics, feed } = this.#site;
    this.#updates ??= metrics.counter({
      name: "portolan_zone_updates_total",
      help: "Dynamic updates, by response code.",
      labels: ["zone", "rcode"],
    });
    if (!this.#isLeader) {
      this.#zones.push({ served, options, dynamic: undefined });
      return undefined;
    }
    this.#copies ??= new ZoneCopies(feed);
    this.#copies.add(served);
    service.copies = this.#copies;
    const damage = metrics
      .counter({
        name: "portolan_zone_journal_damages_total",
        help: "Damaged places found in journals of zone updates.",
        labels: ["zone"],
      })
      .slot(served.apex.toString());
    const dynamic = new DynamicZone({
      served,
      path: options.journal,
      isWhole: options.isWhole,
      policy: options.policy,
      service,
      log,
      readFile: () => zone.readAgain(),
      onDamage: (places) => damage.add(places),
    });
    this.#zones.push({ served, options, dynamic });
    return dynamic;
  }

  /** In a follower: receives the zones from the leader. To be called when all have been added. */
  receive(service: ZoneService): void {
    if (this.#isLeader || this.isEmpty) return;
    const { feed, log } = this.#site;
    ZoneCopy.receive(
      feed,
      this.#zones.map(({ served }) => new ZoneCopy(served, service)),
      (error) => log.error(messageOf(error)),
    );
  }

  /** @throws SetupError for unknown keys */
  check(block: BlockSite): void {
    for (const { served, options } of this.#zones) {
      if (!options.needsKeys) continue;
      for (const { key: name } of options.policy.permissions)
        tsigKeyNamed(name, block.plugins(), `'update' for zone ${served.spelled}`);
    }
  }

  inherit(former: ZoneUpdates): void {
    for (const { served, dynamic } of this.#zones) {
      const same = former.#zones.find(
        (zone) =>
          zone.dynamic?.journal.path === dynamic?.journal.path &&
          (dynamic?.journal.path !== "" || zone.served.apex.equals(served.apex)),
      );
      if (same?.dynamic !== undefined) dynamic?.inherit(same.dynamic);
    }
  }

  /** Another process may be serving the zones: the journals are not written to. */
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
    if (query.type !== RecordType.SOA) return query.reply({ rcode: Rcode.FORMERR, authoritative: true });
    if (zone === undefined) return query.reply({ rcode: Rcode.NOTAUTH, authoritative: true });
    const { signer } = query.root;
    if (signer === undefined || !isKnown(signer, zone.options.policy)) {
      query.trace?.note(
        signer === undefined ? "the update is not signed" : `the key ${signer} may not change the zone`,
      );
      this.#count(zone.served, Rcode.REFUSED);
      return query.reply({ rcode: Rcode.REFUSED, authoritative: true });
    }
    const loaded = zone.served.zone;
    // Signatures and denials would become wrong.
    if (loaded !== undefined && (loaded.nsec.count > 0 || loaded.nsec3.count > 0)) {
      this.#site.log.warning(`Update of zone "${zone.served.spelled}" refused: the file is signed`);
      this.#count(zone.served, Rcode.REFUSED);
      return query.reply({ rcode: Rcode.REFUSED, authoritative: true });
    }
    const message: Message = query.decode();
    const records = message.answer.length + message.authority.length;
    if (records > zone.options.policy.maxUpdateRecords) {
      query.trace?.note(`the update has ${records} records, which is more than allowed`);
      this.#count(zone.served, Rcode.REFUSED);
      return query.reply({ rcode: Rcode.REFUSED, authoritative: true });
    }
    const rcodes =
      zone.dynamic?.update(message, signer) ??
      this.#ask(zone.served, copyOctets(query.packet, 0, query.length), signer);
    return rcodes.then((rcode) => {
      this.#count(zone.served, rcode);
      return query.reply({ rcode, authoritative: true });
    });
  };

  /** In a follower. */
  async #ask({ apex, spelled }: ServedZone, message: Uint8Array, signer: Name): Promise<number> {
    try {
      const question: ForwardedUpdate = { apex: apex.toString(), message, signer: signer.toString() };
      return Number(await this.#site.feed.ask(question));
    } catch (error) {
      const reason = messageOf(error);
      this.#site.log.error(`Updates of zone "${spelled}" failed: ${reason}`);
      return Rcode.SERVFAIL;
    }
  }

  /** In the leader. The follower has checked the permission. */
  async #forwarded({ apex, message, signer }: ForwardedUpdate): Promise<number> {
    const zone = this.#zones.find(({ served }) => served.apex.toString() === apex);
    return (await zone?.dynamic?.update(decodeMessage(message), Name.parse(signer))) ?? Rcode.SERVFAIL;
  }

  #count({ apex }: ServedZone, rcode: number): void {
    this.#updates?.slot(apex.toString(), RCODE_WORDS.get(rcode) ?? String(rcode)).increment();
  }
}

const RCODE_WORDS: ReadonlyMap<number, string> = new Map(
  Object.entries(Rcode).map(([word, number]) => [number, word]),
);
