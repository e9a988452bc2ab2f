/** Makes the answers of an authoritative server (RFC 1034 section 4.3.2) from a zone's octets. */
import { MAX_NAME_OCTETS, Name } from "../../dns/name.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { FOLD, octetAt, readU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { Reply } from "../../plugin/query/reply.ts";
import { APEX, NO_NODE } from "../data/name-tree.ts";
import { hostOffset, nameLength } from "../data/rdata-names.ts";
import { NO_RRSET } from "../data/rrset-table.ts";
import type { Zone } from "../data/zone.ts";
import type { ZoneRecords } from "../data/zone-records.ts";
import { AnswerWriter, QUESTION_NAME, Section } from "./answer-writer.ts";
import { Denial } from "./denial.ts";
import { joinLookup } from "./external-target.ts";
import { NameWalk, Walk } from "./name-walk.ts";

/** CNAME records in one answer: CoreDNS has the same limit (src/plugins/file/README.md). */
const MAX_ALIASES = 10;
/** Hosts whose addresses are added. */
const MAX_HOSTS = 64;
const WILDCARD_LABEL = Uint8Array.of(1, 0x2a);

/** The kind of answer, for metrics and for fallthrough. */
export const Found = {
  DATA: 0,
  NO_DATA: 1,
  NO_NAME: 2,
  EMPTY_NON_TERMINAL: 3,
  DELEGATION: 4,
  ALIAS: 5,
} as const;
export type FoundResult = (typeof Found)[keyof typeof Found];

/** Answers queries one after the other, with shared buffers. */
export class ZoneAnswers {
  readonly #writer: AnswerWriter;
  readonly #walk = new NameWalk();
  readonly #hosts = new Int32Array(MAX_HOSTS);
  #hostCount = 0;
  readonly #aliasOwners = new Int32Array(MAX_ALIASES);
  #aliasCount = 0;
  /** Nodes whose DNAME is already in the answer. */
  readonly #redirections = new Int32Array(MAX_ALIASES);
  #redirectionCount = 0;
  readonly #synthesised = new Uint8Array(2 * MAX_NAME_OCTETS);
  readonly #denials = new WeakMap<Zone, Denial>();
  #denial: Denial | undefined;
  #dnssecOk = false;
  /** Kind of the last answer. */
  found: FoundResult = Found.DATA;
  /** The wildcard that matched the last name, else NO_NODE. */
  wildcard: number = NO_NODE;

  constructor(writer: AnswerWriter = new AnswerWriter()) {
    this.#writer = writer;
  }

  /** Answers a query for a name in `zone`. */
  answer(zone: Zone, query: Query): Outcome | Promise<Outcome> {
    const { records } = zone;
    this.#writer.begin(query.bytes, query.nameEnd);
    this.#hostCount = 0;
    this.#aliasCount = 0;
    this.#redirectionCount = 0;
    this.#dnssecOk = query.dnssecOk;
    this.#denial = undefined;
    this.found = Found.DATA;
    this.wildcard = NO_NODE;
    let bytes = query.bytes;
    let at = QUESTION_NAME;
    let length = query.nameEnd - QUESTION_NAME;
    for (;;) {
      const walk = this.#walk;
      const isDs = query.type === RecordType.DS;
      const way = walk.to(records, bytes, at, length, isDs);
      if (way === Walk.DELEGATION) return this.#refer(zone, query, walk.closest);
      let rrset: number;
      let node = walk.closest;
      this.wildcard = NO_NODE;
      if (way === Walk.REDIRECTION) {
        this.found = Found.ALIAS;
        const end = this.#redirect(zone, node, bytes, at, length);
        if (end < 0) return this.#reply(query, Rcode.YXDOMAIN);
        if (query.type === RecordType.CNAME || query.type === RecordType.ANY)
          return this.#positive(zone, query);
        bytes = this.#synthesised;
        at = 0;
        length = end;
      } else {
        if (way === Walk.MISSING) {
          node = records.names.child(node, WILDCARD_LABEL, 0);
          if (node === NO_NODE) return this.#missing(zone, query, bytes, at, length);
          this.wildcard = node;
        }
        rrset = this.#chooseRrset(records, node, query.type);
        if (rrset >= 0) return this.#data(zone, query, node, rrset, bytes, at);
        rrset = records.rrset(node, RecordType.CNAME);
        if (rrset < 0) return this.#noData(zone, query, node);
        this.#write(Section.ANSWER, records, node, rrset, bytes, at);
        if (this.wildcard !== NO_NODE && this.#dnssecOk) this.#denialOf(zone).expanded(walk);
        bytes = records.heap.bytes;
        at = records.data(rrset) + 2;
        length = nameLength(bytes, at);
      }
      this.found = Found.ALIAS;
      const place = this.#writer.place(bytes, at);
      // A chain that is too long, or loops, ends here.
      if (this.#aliasCount >= MAX_ALIASES || this.#isAliasOwner(place)) return this.#positive(zone, query);
      if (!records.liesInZone(bytes, at, length)) return this.#lookUp(zone, query, bytes, at, length);
    }
  }

  /** Looks up the name of a query in `zone` without making an answer. */
  find({ records }: Zone, query: Query): FoundResult {
    const length = query.nameEnd - QUESTION_NAME;
    const way = this.#walk.to(records, query.bytes, QUESTION_NAME, length, query.type === RecordType.DS);
    if (way === Walk.DELEGATION) return Found.DELEGATION;
    if (way === Walk.REDIRECTION) return Found.ALIAS;
    if (way === Walk.FOUND)
      return records.first(this.#walk.closest) < 0 ? Found.EMPTY_NON_TERMINAL : Found.DATA;
    const hasWildcard = records.names.child(this.#walk.closest, WILDCARD_LABEL, 0) !== NO_NODE;
    return hasWildcard ? Found.DATA : Found.NO_NAME;
  }

  #data(zone: Zone, query: Query, node: number, rrset: number, bytes: Uint8Array, at: number): Outcome {
    this.found = this.#aliasCount > 0 ? Found.ALIAS : Found.DATA;
    const { records } = zone;
    if (query.type === RecordType.RRSIG) this.#writeSignatures(records, node, bytes, at);
    // Redirected names may lead to the DNAME itself.
    else if (records.type(rrset) !== RecordType.DNAME || !this.#isRedirection(node))
      this.#write(Section.ANSWER, records, node, rrset, bytes, at);
    if (this.wildcard !== NO_NODE && this.#dnssecOk) {
      this.#denialOf(zone).expanded(this.#walk);
    }
    const isApexNs = node === APEX && records.type(rrset) === RecordType.NS && this.#aliasCount === 0;
    if (records.type(rrset) !== RecordType.NS || node === APEX) this.#noteHosts(records, rrset);
    return this.#positive(zone, query, isApexNs);
  }

  /** Authority and additional section of a positive answer. */
  #positive(zone: Zone, query: Query, withoutNs = false): Outcome {
    const { records } = zone;
    if (!withoutNs && !this.#writeTail(zone, this.#dnssecOk ? Tail.SIGNED_NS : Tail.NS)) {
      const ns = records.rrset(APEX, RecordType.NS);
      const before = this.#writer.count;
      if (ns >= 0) this.#writeNode(Section.AUTHORITY, records, APEX, ns);
      this.#keepTail(zone, this.#dnssecOk ? Tail.SIGNED_NS : Tail.NS, before);
    }
    this.#denial?.write();
    this.#writeHosts(records);
    return this.#reply(query, Rcode.NOERROR);
  }

  #noData(zone: Zone, query: Query, node: number): Outcome {
    const isEmpty = zone.records.first(node) < 0;
    if (this.#aliasCount === 0) this.found = isEmpty ? Found.EMPTY_NON_TERMINAL : Found.NO_DATA;
    this.#negative(zone);
    if (this.#dnssecOk) {
      if (this.wildcard === NO_NODE) this.#denialOf(zone).typeMissing(node);
      else this.#denialOf(zone).wildcardTypeMissing(this.#walk, node);
    }
    this.#denial?.write();
    return this.#reply(query, Rcode.NOERROR);
  }

  #missing(
    zone: Zone,
    query: Query,
    bytes: Uint8Array,
    at: number,
    length: number,
  ): Outcome | Promise<Outcome> {
    // Another zone of this server may have the target of an alias.
    if (this.#aliasCount > 0) return this.#lookUp(zone, query, bytes, at, length);
    this.found = Found.NO_NAME;
    this.#negative(zone);
    if (this.#dnssecOk) this.#denialOf(zone).nameMissing(this.#walk);
    this.#denial?.write();
    return this.#reply(query, Rcode.NXDOMAIN);
  }

  /** RFC 2308 section 3: the SOA's TTL in a negative answer is at most its MINIMUM field. */
  #negative(zone: Zone): void {
    const { records } = zone;
    if (!this.#dnssecOk && this.#writeTail(zone, Tail.SOA)) return;
    const before = this.#writer.count;
    const ttl = zone.negativeTtl;
    this.#writer.rrsetOfNode(Section.AUTHORITY, records, APEX, zone.soa, ttl);
    const signatures = this.#dnssecOk ? records.signatures(APEX, RecordType.SOA) : NO_RRSET;
    if (signatures >= 0) this.#writer.rrsetOfNode(Section.AUTHORITY, records, APEX, signatures, ttl);
    if (!this.#dnssecOk) this.#keepTail(zone, Tail.SOA, before);
  }

  /** Not after other names, which the records could share suffixes with. */
  #writeTail(zone: Zone, kind: number): boolean {
    const tail = zone.tails[kind];
    if (tail === undefined || this.#aliasCount + this.#hostCount > 0 || this.#denial !== undefined)
      return false;
    return this.#writer.tail(Section.AUTHORITY, tail, zone.apex.wire.length);
  }

  #keepTail(zone: Zone, kind: number, first: number): void {
    if (this.#aliasCount > 0 || this.#writer.count === first) return;
    zone.tails[kind] ??= this.#writer.tailFrom(first, zone.apex.wire.length);
  }

  #refer(zone: Zone, query: Query, node: number): Outcome {
    if (this.#aliasCount === 0) this.found = Found.DELEGATION;
    const { records } = zone;
    const ns = records.rrset(node, RecordType.NS);
    this.#writer.rrsetOfNode(Section.AUTHORITY, records, node, ns, records.ttl(ns));
    this.#noteHosts(records, ns);
    if (this.#dnssecOk) {
      const ds = records.rrset(node, RecordType.DS);
      if (ds >= 0) this.#writeNode(Section.AUTHORITY, records, node, ds);
      else this.#denialOf(zone).typeMissing(node);
    }
    this.#denial?.write();
    this.#writeHosts(records);
    return this.#reply(query, Rcode.NOERROR, this.#aliasCount > 0);
  }

  /**
   * Writes a DNAME and its synthesized CNAME (RFC 6672 section 3.2), whose target is left in the buffer.
   * @returns the target's length, or TOO_LONG
   */
  #redirect(zone: Zone, node: number, bytes: Uint8Array, at: number, length: number): number {
    const { records } = zone;
    const rrset = records.rrset(node, RecordType.DNAME);
    const { bytes: heap } = records.heap;
    const target = records.data(rrset) + 2;
    const targetLength = nameLength(heap, target);
    const owner = this.#writer.nodeName(records, node);
    const kept = length - nameLength(owner, 0);
    if (!this.#isRedirection(node)) {
      this.#redirections[this.#redirectionCount++] = node;
      this.#writeNode(Section.ANSWER, records, node, rrset);
    }
    if (kept + targetLength > MAX_NAME_OCTETS) return TOO_LONG;
    const name = new Uint8Array(kept + targetLength);
    for (let index = 0; index < kept; index++) name[index] = octetAt(FOLD, octetAt(bytes, at + index));
    name.set(heap.subarray(target, target + targetLength), kept);
    const place = this.#writer.place(bytes, at);
    this.#aliasOwners[this.#aliasCount++] = place;
    this.#writer.alias(bytes === this.#synthesised ? bytes.slice() : bytes, at, records.ttl(rrset), name);
    this.#synthesised.set(name);
    return name.length;
  }

  /** Whether the node's DNAME is already in the answer. */
  #isRedirection(node: number): boolean {
    return this.#redirections.subarray(0, this.#redirectionCount).includes(node);
  }

  /** Writes an RRset with the queried name as owner, which is also right for wildcards. */
  #write(
    section: 0 | 1 | 2,
    records: ZoneRecords,
    node: number,
    rrset: number,
    bytes: Uint8Array,
    at: number,
  ): void {
    const writer = this.#writer;
    const isQuestion = at === QUESTION_NAME && this.#aliasCount === 0;
    const owner = isQuestion ? writer.bytes : bytes;
    writer.rrset(section, records, rrset, owner, at, records.ttl(rrset));
    if (this.#dnssecOk) {
      const signatures = records.signatures(node, records.type(rrset));
      if (signatures >= 0) writer.rrset(section, records, signatures, owner, at, records.ttl(signatures));
    }
    if (records.type(rrset) === RecordType.CNAME) {
      this.#aliasOwners[this.#aliasCount++] = isQuestion ? QUESTION_NAME : writer.place(bytes, at);
    }
  }

  #writeNode(section: 0 | 1 | 2, records: ZoneRecords, node: number, rrset: number): void {
    this.#writer.rrsetOfNode(section, records, node, rrset, records.ttl(rrset));
    if (!this.#dnssecOk) return;
    const signatures = records.signatures(node, records.type(rrset));
    if (signatures >= 0)
      this.#writer.rrsetOfNode(section, records, node, signatures, records.ttl(signatures));
  }

  #writeSignatures(records: ZoneRecords, node: number, bytes: Uint8Array, at: number): void {
    const isQuestion = at === QUESTION_NAME && this.#aliasCount === 0;
    const owner = isQuestion ? this.#writer.bytes : bytes;
    for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) {
      if (records.type(rrset) !== RecordType.RRSIG) continue;
      this.#writer.rrset(Section.ANSWER, records, rrset, owner, at, records.ttl(rrset));
    }
  }

  /** RFC 8482 section 4.1: ANY is answered with one RRset. */
  #chooseRrset(records: ZoneRecords, node: number, type: number): number {
    if (type !== RecordType.ANY) return records.rrset(node, type);
    let rrset = records.first(node);
    while (rrset >= 0 && isOfSigning(records.type(rrset))) rrset = records.next(rrset);
    return rrset >= 0 ? rrset : records.first(node);
  }

  #isAliasOwner(place: number): boolean {
    if (place < 0) return false;
    for (let index = 0; index < this.#aliasCount; index++)
      if (this.#aliasOwners[index] === place) return true;
    return false;
  }

  #noteHosts(records: ZoneRecords, rrset: number): void {
    const offset = hostOffset(records.type(rrset));
    if (offset < 0) return;
    const { bytes } = records.heap;
    let at = records.data(rrset);
    for (let left = records.count(rrset); left > 0; left--) {
      const length = readU16(bytes, at);
      if (length > offset) this.#noteHost(records, bytes, at + 2 + offset);
      at += 2 + length;
    }
  }

  #noteHost(records: ZoneRecords, bytes: Uint8Array, at: number): void {
    const length = nameLength(bytes, at);
    const { apex } = records;
    if (length < apex.wire.length) return;
    const node = records.nodeAt(bytes, at, length);
    if (node === NO_NODE || this.#hostCount >= MAX_HOSTS) return;
    for (let index = 0; index < this.#hostCount; index++) if (this.#hosts[index] === node) return;
    this.#hosts[this.#hostCount++] = node;
  }

  #writeHosts(records: ZoneRecords): void {
    for (let index = 0; index < this.#hostCount; index++) {
      const node = this.#hosts[index] as number;
      const ipv4 = records.rrset(node, RecordType.A);
      if (ipv4 >= 0) this.#writeNode(Section.ADDITIONAL, records, node, ipv4);
      const ipv6 = records.rrset(node, RecordType.AAAA);
      if (ipv6 >= 0) this.#writeNode(Section.ADDITIONAL, records, node, ipv6);
    }
  }

  #denialOf(zone: Zone): Denial {
    let denial = this.#denial;
    if (denial !== undefined) return denial;
    denial = this.#denials.get(zone);
    if (denial === undefined) {
      denial = new Denial(zone, this.#writer);
      this.#denials.set(zone, denial);
    }
    denial.begin();
    this.#denial = denial;
    return denial;
  }

  #reply(query: Query, rcode: number, authoritative = true): Reply {
    const flags = (authoritative ? Flag.AA : 0) | (this.#writer.isComplete ? 0 : Flag.TC);
    return Reply.fromEncoded(query, this.#writer.lend(), rcode, flags);
  }

  /** The last target is resolved elsewhere (docs/spec/coredns-behaviour.md#internal-lookups). */
  #lookUp(
    zone: Zone,
    query: Query,
    bytes: Uint8Array,
    at: number,
    length: number,
  ): Outcome | Promise<Outcome> {
    const target = Name.fromCheckedWire(bytes.slice(at, at + length));
    // The lookup may return here and use the same buffers, so the records so far are copied first.
    this.#denial?.write();
    const aliases = this.#writer.finish();
    const { records } = zone;
    const ns = records.rrset(APEX, RecordType.NS);
    this.#writer.begin(query.bytes, query.nameEnd);
    if (ns >= 0) this.#writeNode(Section.AUTHORITY, records, APEX, ns);
    const nameServers = this.#writer.finish();
    const { wildcard } = this;
    const outcome = query.lookup(target, query.type);
    // Whatever the lookup found here, this answer is an alias, which the zone has.
    this.found = Found.ALIAS;
    this.wildcard = wildcard;
    if (outcome instanceof Promise) {
      return outcome.then((settled) => joinLookup(query, aliases, nameServers, settled));
    }
    return joinLookup(query, aliases, nameServers, outcome);
  }
}

/** Ends of answers, as indexes of {@link Zone.tails}. */
const Tail = { NS: 0, SIGNED_NS: 1, SOA: 2 } as const;

const TOO_LONG = -1;

/** DNSSEC records about other records, which ANY is not meant to return. */
function isOfSigning(type: number): boolean {
  return type === RecordType.RRSIG || type === RecordType.NSEC;
}
