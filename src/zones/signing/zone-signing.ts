/** Signs a whole zone: returns the lines of the signed zone, in canonical order (RFC 4035 section 2, RFC 5155 section 7.1). */
import type { KeyPair } from "../../dns/dnssec/key-pair.ts";
import { canonicalRrset, signatureRecord, signRrset } from "../../dns/dnssec/rrset-signature.ts";
import { Name } from "../../dns/name.ts";
import { toBase32Hex } from "../../dns/octets.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { CDNSKEY, CDS, DNSKEY, NSEC, NSEC3, NSEC3PARAM, SOA } from "../../dns/record-table.ts";
import { canonicalData, formatRecord } from "../../dns/resource-record.ts";
import { RecordType } from "../../dns/type-names.ts";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { HashedNames } from "../data/hashed-names.ts";
import { APEX, NO_NODE } from "../data/name-tree.ts";
import { ANY_TYPE, NodeOrder } from "../data/node-order.ts";
import type { Zone } from "../data/zone.ts";
import { rrsetRecords, soaRecord } from "../data/zone-transfer.ts";

export interface ZoneSigningOptions {
  readonly keys: readonly KeyPair[];
  readonly serial: number;
  /** Seconds since the epoch. */
  readonly inception: number;
  readonly expiration: number;
  /** NSEC3 with one hash and no salt in place of NSEC (RFC 9276 section 3.1). */
  readonly nsec3: boolean;
  readonly pause: () => Promise<void>;
}

/** Types left by an earlier signing, which are made again. */
const MADE_HERE: ReadonlySet<number> = new Set([
  RecordType.DNSKEY,
  RecordType.RRSIG,
  RecordType.NSEC,
  RecordType.NSEC3,
  RecordType.NSEC3PARAM,
  RecordType.CDS,
  RecordType.CDNSKEY,
]);

/** Names signed at a time: enough to keep libuv's threads busy. */
const TOGETHER = 8;

/** Names between two pauses that are only checked, written or hashed. */
const LOOKED_AT = 500;
const PLAIN = 50;
const HASHES = 50;

/** @returns the lines of the signed zone, with their ends */
export async function* signedZoneLines(zone: Zone, options: ZoneSigningOptions): AsyncGenerator<string> {
  const signing = new ZoneSigning(zone, options);
  yield* signing.lines();
}

class ZoneSigning {
  readonly #zone: Zone;
  readonly #options: ZoneSigningOptions;
  readonly #soa: ReturnType<typeof soaRecord>;

  constructor(zone: Zone, options: ZoneSigningOptions) {
    this.#zone = zone;
    this.#options = options;
    const soa = soaRecord(zone);
    this.#soa = SOA.create(soa.name, soa.ttl, { ...soa.data, serial: options.serial });
  }

  async *lines(): AsyncGenerator<string> {
    const { pause } = this.#options;
    const order = new NodeOrder(this.#zone.records, ANY_TYPE);
    await order.build(pause);
    const nodes = await this.#authoritative(order);
    const { records } = this.#zone;
    yield* inOrder(nodes.signed.length, pause, (index) => {
      const next = nodes.signed[(index + 1) % nodes.signed.length] ?? APEX;
      return this.#nodeLines(nodes.signed[index] ?? APEX, records.nodeName(next));
    });
    for (let index = 0; index < nodes.others.length; index++) {
      if (index % PLAIN === PLAIN - 1) await pause();
      yield this.#plainLines(nodes.others[index] ?? APEX);
    }
    if (this.#options.nsec3) yield* this.#hashedLines(nodes.signed);
  }

  /** The authoritative nodes, and those below delegations, both in canonical order. */
  async #authoritative(
    order: NodeOrder,
  ): Promise<{ readonly signed: Int32Array; readonly others: Int32Array }> {
    const { records } = this.#zone;
    const signed = new Int32Array(order.count);
    const others = new Int32Array(order.count);
    let [signedCount, otherCount] = [0, 0];
    let cut = NO_NODE;
    for (let index = 0; index < order.count; index++) {
      if (index % LOOKED_AT === LOOKED_AT - 1) await this.#options.pause();
      const node = order.at(index);
      // Names below a name directly follow it.
      if (cut !== NO_NODE && this.#isBelow(node, cut)) others[otherCount++] = node;
      else if (this.#hasOwnRecords(node)) {
        signed[signedCount++] = node;
        const isCut = records.rrset(node, RecordType.NS) >= 0 || records.rrset(node, RecordType.DNAME) >= 0;
        cut = isCut && node !== APEX ? node : NO_NODE;
      }
    }
    return { signed: signed.subarray(0, signedCount), others: others.subarray(0, otherCount) };
  }

  #isBelow(node: number, other: number): boolean {
    const { names } = this.#zone.records;
    let at = node;
    while (at !== APEX && at !== other) at = names.parent(at);
    return at === other;
  }

  #hasOwnRecords(node: number): boolean {
    const { records } = this.#zone;
    let rrset = records.first(node);
    while (rrset >= 0 && MADE_HERE.has(records.type(rrset))) rrset = records.next(rrset);
    return rrset >= 0;
  }

  #typesAt(node: number): number[] {
    const { records } = this.#zone;
    const types: number[] = [];
    for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) {
      const type = records.type(rrset);
      if (!MADE_HERE.has(type)) types.push(type);
    }
    return types;
  }

  #rrsetsAt(node: number, name: Name): ResourceRecord[][] {
    const { records } = this.#zone;
    if (node === APEX) return this.#apexRrsets(name);
    return this.#typesAt(node).map((type) => [...rrsetRecords(records, name, records.rrset(node, type))]);
  }

  #apexRrsets(name: Name): ResourceRecord[][] {
    const { records } = this.#zone;
    const own = this.#typesAt(APEX)
      .filter((type) => type !== RecordType.SOA)
      .map((type) => [...rrsetRecords(records, name, records.rrset(APEX, type))]);
    const { keys } = this.#options;
    const { ttl } = this.#soa;
    const sets: ResourceRecord[][] = [
      [this.#soa],
      ...own,
      keys.map(({ record }) => DNSKEY.create(name, ttl, record.data)),
      keys.map(({ record }) => CDNSKEY.create(name, ttl, record.data)),
      keys.map((key) => delegationSigner(name, ttl, key)),
    ];
    if (this.#options.nsec3)
      sets.push([
        NSEC3PARAM.create(name, 0, { hashAlgorithm: 1, flags: 0, iterations: 0, salt: new Uint8Array(0) }),
      ]);
    return sets;
  }

  async #nodeLines(node: number, next: Name): Promise<string> {
    const { records } = this.#zone;
    const name = records.nodeName(node);
    const sets = this.#rrsetsAt(node, name);
    const isDelegation = node !== APEX && records.rrset(node, RecordType.NS) >= 0;
    const mustSign = (type: number) => mayBeSigned(type, isDelegation);
    const types = deniedTypes(sets, isDelegation);
    if (!this.#options.nsec3) {
      const denied = [...types, RecordType.RRSIG, RecordType.NSEC];
      sets.push([NSEC.create(name, this.#denialTtl, { nextName: next, types: denied })]);
    }
    const parts: string[] = [];
    for (const set of sets) {
      const [first] = set;
      if (first === undefined) continue;
      parts.push(...set.map(formatRecord));
      if (mustSign(first.type)) parts.push(...(await this.#signatures(set)));
    }
    return `${parts.join("\n")}\n`;
  }

  /** RFC 9077 section 3. */
  get #denialTtl(): number {
    return Math.min(this.#soa.ttl, this.#soa.data.minimum);
  }

  #plainLines(node: number): string {
    const { records } = this.#zone;
    const name = records.nodeName(node);
    return this.#rrsetsAt(node, name)
      .flat()
      .map((record) => `${formatRecord(record)}\n`)
      .join("");
  }

  async #signatures(set: readonly ResourceRecord[]): Promise<string[]> {
    const { keys, inception, expiration } = this.#options;
    const [first] = set;
    const originalTtl = first?.ttl ?? 0;
    const records = canonicalRrset(set, originalTtl);
    const facts = { signer: this.#zone.apex, originalTtl, inception, expiration };
    return await Promise.all(
      keys.map(async (key) =>
        formatRecord(signatureRecord(set, key, facts, await signRrset(set, records, key, facts))),
      ),
    );
  }

  async *#hashedLines(signed: Int32Array): AsyncGenerator<string> {
    const { pause } = this.#options;
    const names = await this.#hashedNames(signed);
    const order = await names.sorted(pause);
    yield* inOrder(order.length, pause, (index) => {
      const number = order[index] ?? 0;
      const next = order[(index + 1) % order.length] ?? number;
      return this.#hashLines(names.hash(number), names.hash(next), names.node(number));
    });
  }

  async #hashLines(hash: Uint8Array, nextHash: Uint8Array, node: number): Promise<string> {
    const owner = Name.fromLabels([toBase32Hex(hash).toLowerCase()], this.#zone.apex);
    const fields = { hashAlgorithm: 1, flags: 0, iterations: 0, salt: new Uint8Array(0), nextHash };
    const record = NSEC3.create(owner, this.#denialTtl, { ...fields, types: this.#hashedTypes(node) });
    return `${[formatRecord(record), ...(await this.#signatures([record]))].join("\n")}\n`;
  }

  /** The types of a name; empty if only names below it have records. */
  #hashedTypes(node: number): number[] {
    const { records } = this.#zone;
    const isDelegation = node !== APEX && records.rrset(node, RecordType.NS) >= 0;
    const types = deniedTypes(this.#rrsetsAt(node, records.nodeName(node)), isDelegation);
    return types.some((type) => mayBeSigned(type, isDelegation)) ? [...types, RecordType.RRSIG] : types;
  }

  /** The signed names, and empty non-terminals above such names (RFC 5155 section 7.1). */
  async #hashedNames(signed: Int32Array): Promise<HashedNames> {
    const { records } = this.#zone;
    const { pause } = this.#options;
    const hashed = new HashedNames(signed.length + (signed.length >>> 3));
    const isKnown = new Uint8Array(records.names.limit);
    for (const node of signed) isKnown[node] = 1;
    for (let index = 0; index < signed.length; index++) {
      const node = signed[index] ?? APEX;
      if (index % HASHES === HASHES - 1) await pause();
      hashed.add(records.nodeName(node), node);
      for (let parent = node; parent !== APEX; ) {
        parent = records.names.parent(parent);
        if (isKnown[parent] === 1) break;
        isKnown[parent] = 1;
        hashed.add(records.nodeName(parent), parent);
      }
    }
    return hashed;
  }
}

/** Makes several texts at a time, and yields them in order. */
async function* inOrder(
  count: number,
  pause: () => Promise<void>,
  make: (index: number) => Promise<string>,
): AsyncGenerator<string> {
  const texts: Promise<string>[] = [];
  for (let index = 0; index < count + TOGETHER; index++) {
    if (index < count) {
      const text = make(index);
      // The consumer gets the error; after the first one, nothing consumes the others.
      text.catch(() => undefined);
      texts.push(text);
    }
    if (index < TOGETHER) continue;
    const text = await texts.shift();
    if (text !== undefined) yield text;
    await pause();
  }
}

/** Types that a denial lists: of a delegation this zone has NS and DS; its other records are below the cut. */
function deniedTypes(sets: readonly (readonly ResourceRecord[])[], isDelegation: boolean): number[] {
  return sets
    .flatMap(([first]) => (first === undefined ? [] : [first.type]))
    .filter((type) => !isDelegation || type === RecordType.NS || type === RecordType.DS);
}

function mayBeSigned(type: number, isDelegation: boolean): boolean {
  return !isDelegation || type === RecordType.DS || type === RecordType.NSEC;
}

/** With SHA-256. SHA-1 must not be used (RFC 8624 section 3.3). */
function delegationSigner(name: Name, ttl: number, { record, tag, algorithm }: KeyPair): ResourceRecord {
  const digest = nodeCrypto().createHash("sha256").update(name.folded).update(canonicalData(record)).digest();
  return CDS.create(name, ttl, { keyTag: tag, algorithm: algorithm.number, digestType: 2, digest });
}
