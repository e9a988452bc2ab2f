/**
 * Turns items into records (docs/spec/coredns-behaviour.md#skydns-records). The steps are generators that yield
 * requests for data and get the results, at once or later: the same steps serve mirrored keys and keys that have to
 * be read.
 */
import {
  A,
  AAAA,
  CNAME,
  MX,
  Name,
  NS,
  PTR,
  Rcode,
  RecordType,
  type ResourceRecord,
  SRV,
  TXT,
} from "../../dns/index.ts";
import { nameOfKey } from "../../etcd/skydns/key-path.ts";
import type { Outcome } from "../../plugin/index.ts";
import { type Item, type Reading, targetOfItem } from "./items.ts";

/** The data that a step requests. */
export type Demand =
  | { readonly kind: "read"; readonly name: Name; readonly exact: boolean }
  | { readonly kind: "look up"; readonly name: Name; readonly type: number };

export type Supply = Reading | Outcome;
type Steps<T> = Generator<Demand, T, Supply>;

/** State shared by all steps of one answer. */
export interface Course {
  readonly prefix: string;
  readonly zone: Name;
  /** Whether the apex uses all keys of the zone if it has none of its own. */
  readonly apexFallsBack: boolean;
  /** Remaining lookups through the server for this answer. */
  lookupsLeft: number;
  isTruncated: boolean;
}

/** A key that cannot be read, or does not exist. */
export class Missing extends Error {
  override readonly name = "Missing";
}

export interface Records {
  readonly answer: readonly ResourceRecord[];
  readonly additional: readonly ResourceRecord[];
}

/** Bound for the links of a chain of aliases. */
const MAX_CHAIN = 10;

/** The records of a name and type. @throws Missing, or an error of etcd */
export function* recordsOf(course: Course, name: Name, type: number): Steps<Records> {
  switch (type) {
    case RecordType.A:
    case RecordType.AAAA:
    case RecordType.TXT:
      return { answer: yield* chased(course, name, type, []), additional: [] };
    case RecordType.CNAME: {
      const item = (yield* read(name, true))[0];
      const target = item === undefined || item.address !== "" ? undefined : hostOf(item);
      return {
        answer: item === undefined || target === undefined ? [] : [CNAME.create(name, item.ttl, { target })],
        additional: [],
      };
    }
    case RecordType.PTR:
      return { answer: yield* pointers(name), additional: [] };
    case RecordType.SRV:
      return yield* services(course, name);
    case RecordType.MX:
      return yield* mailServers(course, name);
    case RecordType.NS:
      if (name.equals(course.zone)) return yield* nameServers(course);
      break;
  }
  // Records of this type never exist: only the name may.
  yield* itemsAt(course, name, RecordType.A);
  return { answer: [], additional: [] };
}

function* read(name: Name, exact: boolean): Steps<readonly Item[]> {
  const reading = yield { kind: "read", name, exact };
  if (reading.kind === "found") return reading.items;
  if (reading.kind === "failed" && "error" in reading && reading.error !== undefined) throw reading.error;
  throw new Missing();
}

/** The apex has its addresses in a separate place, or every item in the zone would be one. */
function* itemsAt({ zone, apexFallsBack }: Course, name: Name, type: number): Steps<readonly Item[]> {
  if (name.equals(zone) && type !== RecordType.TXT) {
    try {
      return yield* read(Name.fromLabels(["apex", "dns"], zone), false);
    } catch (error) {
      // Only a missing key makes the apex use the whole zone: after a failure it may exist.
      if (!(error instanceof Missing) || !apexFallsBack) throw error;
    }
  }
  return yield* read(name, false);
}

/** Addresses or texts, with the aliases that lead to them. */
function* chased(
  course: Course,
  name: Name,
  type: number,
  chain: readonly ResourceRecord[],
): Steps<ResourceRecord[]> {
  const records: ResourceRecord[] = [];
  const known = new Set<string>();
  for (const item of yield* itemsAt(course, name, type)) {
    const own = ownRecord(item, name, type);
    if (own !== undefined && !known.has(own.key)) {
      known.add(own.key);
      records.push(own.record);
    }
    if (item.kind === "name") records.push(...(yield* followed(course, name, type, item, chain)));
  }
  return records;
}

function ownRecord(
  item: Item,
  name: Name,
  type: number,
): { readonly key: string; readonly record: ResourceRecord } | undefined {
  const { address, kind, text, ttl } = item;
  if (type === RecordType.A && kind === "ipv4")
    return { key: address, record: A.create(name, ttl, { address }) };
  if (type === RecordType.AAAA && kind === "ipv6")
    return { key: address, record: AAAA.create(name, ttl, { address }) };
  if (type === RecordType.TXT && kind === "text" && text !== "")
    return { key: text, record: TXT.create(name, ttl, { strings: textParts(text) }) };
  return undefined;
}

/** The alias of an item, and its target's records; empty if the chain loops, is too long or leads nowhere. */
function* followed(
  course: Course,
  name: Name,
  type: number,
  item: Item,
  chain: readonly ResourceRecord[],
): Steps<ResourceRecord[]> {
  const target = hostOf(item);
  // A name returns all items below it, so an alias to a name below points to itself.
  if (target === undefined || target.isAtOrBelow(name)) return [];
  const alias = CNAME.create(name, item.ttl, { target });
  const isKnown = chain.some((link) => CNAME.is(link) && link.data.target.equals(target));
  if (chain.length > MAX_CHAIN || isKnown) return [];
  if (target.isAtOrBelow(course.zone)) {
    const behind = yield* attempt(chased(course, target, type, [...chain, alias]));
    return behind.length === 0 ? [] : [alias, ...behind];
  }
  return [alias, ...(yield* lookedUp(course, target, type))];
}

/** Records that the server finds outside the zone, possibly none. */
function* lookedUp(course: Course, name: Name, type: number): Steps<readonly ResourceRecord[]> {
  if (course.lookupsLeft === 0) return [];
  course.lookupsLeft--;
  const outcome = yield { kind: "look up", name, type };
  if (outcome.kind !== "reply" || outcome.rcode !== Rcode.NOERROR) return [];
  if (outcome.truncated) course.isTruncated = true;
  return outcome.answer;
}

/** Returns no records if the steps fail. */
function* attempt(steps: Steps<ResourceRecord[]>): Steps<ResourceRecord[]> {
  try {
    return yield* steps;
  } catch {
    return [];
  }
}

function* pointers(name: Name): Steps<ResourceRecord[]> {
  const targets = new Map<string, ResourceRecord>();
  for (const item of yield* read(name, true)) {
    const target = item.address === "" ? hostOf(item) : undefined;
    if (target === undefined || targets.has(item.host)) continue;
    targets.set(item.host, PTR.create(name, item.ttl, { target }));
  }
  return [...targets.values()];
}

/** Additional records, without duplicates. */
class Additions {
  readonly records: ResourceRecord[] = [];
  readonly #known = new Set<string>();

  add(item: Item, owner: Name): void {
    const { address, kind, ttl } = item;
    const key = `${owner.toLowerCase()} ${address}`;
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.records.push(
      kind === "ipv4" ? A.create(owner, ttl, { address }) : AAAA.create(owner, ttl, { address }),
    );
  }

  /** Adds the addresses of a host in items. */
  *addHost(course: Course, host: Name): Steps<void> {
    const key = `${host.toLowerCase()}`;
    if (this.#known.has(key)) return;
    this.#known.add(key);
    if (host.isAtOrBelow(course.zone)) {
      this.records.push(...(yield* attempt(chased(course, host, RecordType.A, []))));
      return;
    }
    this.records.push(...(yield* lookedUp(course, host, RecordType.A)));
    for (const record of yield* lookedUp(course, host, RecordType.AAAA))
      if (!CNAME.is(record)) this.records.push(record);
  }
}

function* services(course: Course, name: Name): Steps<Records> {
  const items = (yield* read(name, false)).filter(({ host }) => host !== "");
  const sums = new Map<number, number>();
  for (const { priority, weight } of items)
    sums.set(priority, (sums.get(priority) ?? 0) + (weight === 0 ? DEFAULT_WEIGHT : weight));
  const answer: ResourceRecord[] = [];
  const additions = new Additions();
  const known = new Set<string>();
  for (const item of items) {
    // This port means that there is no service.
    if (item.port === -1 || item.kind === "text") continue;
    const target = item.kind === "name" ? hostOf(item) : targetOfItem(course.prefix, item);
    if (target === undefined) continue;
    const share = (100 / (sums.get(item.priority) ?? 1)) * (item.weight === 0 ? DEFAULT_WEIGHT : item.weight);
    const record = SRV.create(name, item.ttl, {
      priority: item.priority & 0xffff,
      weight: Math.max(1, Math.floor(share)) & 0xffff,
      port: item.port & 0xffff,
      target,
    });
    const key = `${target.toLowerCase()} ${item.port}`;
    if (item.kind === "name") {
      answer.push(record);
      yield* additions.addHost(course, target);
    } else {
      if (!known.has(key)) answer.push(record);
      known.add(key);
      additions.add(item, target);
    }
  }
  return { answer, additional: additions.records };
}

function* mailServers(course: Course, name: Name): Steps<Records> {
  const answer: ResourceRecord[] = [];
  const additions = new Additions();
  for (const item of yield* read(name, false)) {
    if (!item.mail || item.kind === "text") continue;
    const exchange = item.kind === "name" ? hostOf(item) : targetOfItem(course.prefix, item);
    if (exchange === undefined) continue;
    answer.push(MX.create(name, item.ttl, { preference: item.priority & 0xffff, exchange }));
    if (item.kind === "name") yield* additions.addHost(course, exchange);
    else additions.add(item, nameOfKey(course.prefix, item.key) ?? exchange);
  }
  return { answer, additional: additions.records };
}

/** The name servers of the zone, which have a separate place and must be addresses. */
function* nameServers(course: Course): Steps<Records> {
  const { zone, prefix } = course;
  const answer: ResourceRecord[] = [];
  const additions = new Additions();
  const known = new Set<string>();
  for (const item of yield* read(Name.fromLabels(["ns", "dns"], zone), false)) {
    if (item.host === "") continue;
    if (item.address === "")
      throw new Error(`${item.key}: a name server must be an IP address, not '${item.host}'`);
    const nameServer = targetOfItem(prefix, item);
    if (nameServer === undefined) continue;
    const key = `${nameServer.toLowerCase()}`;
    if (!known.has(key)) answer.push(NS.create(zone, item.ttl, { nameServer }));
    known.add(key);
    additions.add(item, nameServer);
  }
  return { answer, additional: additions.records };
}

const DEFAULT_WEIGHT = 100;
const MAX_STRING_OCTETS = 255;

function hostOf({ host }: Item): Name | undefined {
  return host === "" ? undefined : Name.tryParse(host);
}

/** A character-string of a TXT record holds at most 255 octets. */
function textParts(text: string): Uint8Array[] {
  const octets = Buffer.from(text);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < octets.length; at += MAX_STRING_OCTETS)
    parts.push(octets.subarray(at, at + MAX_STRING_OCTETS));
  return parts;
}
