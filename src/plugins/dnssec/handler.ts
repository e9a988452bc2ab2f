import {
  CNAME,
  DNSKEY,
  type Edns,
  ExtendedErrorCode,
  extendedError,
  type KeyPair,
  type Name,
  Opcode,
  Rcode,
  RecordType,
  type ResourceRecord,
  RRSIG,
  rrsetsOf,
  SOA,
} from "../../dns/index.ts";
import { type PacedStep, PacedSteps } from "../../lib/time/paced-steps.ts";
import {
  type Handler,
  type Outcome,
  type PluginInstance,
  type Query,
  type Reply,
  SetupError,
  type Site,
} from "../../plugin/index.ts";
import { readKeyFiles } from "../../zones/signing/zone-keys.ts";
import { type ModuleLoader, readSecretKey } from "./aws-secrets.ts";
import type { DnssecConfig } from "./config.ts";
import { blackLie, compactDenial, NXNAME, unsignedDelegation } from "./denial.ts";
import { DnssecMetrics } from "./metrics.ts";
import { SignatureStore } from "./signature-store.ts";
import { LateSignature, type SignatureWaiter, Signer } from "./signer.ts";

/** The keys of one zone: those that sign DNSKEY, and those that sign everything else. */
interface ZoneKeys {
  readonly all: readonly KeyPair[];
  readonly keySigning: readonly KeyPair[];
  readonly zoneSigning: readonly KeyPair[];
}

const NO_SUCH_TYPE: Edns = Object.freeze({
  udpSize: 1232,
  version: 0,
  dnssecOk: false,
  options: [extendedError(ExtendedErrorCode.INVALID_QUERY_TYPE, "NXNAME is not a record type")],
});

/** Milliseconds per turn of the event loop for completing answers whose signatures are ready. */
const SHARE = 1;

type Piece = ResourceRecord | LateSignature;

interface Sections {
  readonly answer: readonly Piece[];
  readonly authority: readonly Piece[];
  readonly additional: readonly Piece[];
}

export class OnlineSigning implements PluginInstance {
  readonly #config: DnssecConfig;
  readonly #site: Site;
  readonly #load: ModuleLoader | undefined;
  readonly #keys = new Map<Name, ZoneKeys>();
  readonly #metrics: DnssecMetrics;
  /** Thousands of answers may wait for the same signature. */
  readonly answers: PacedSteps;
  #signer: Signer | undefined;

  /** @param load loads the package of AWS */
  constructor(config: DnssecConfig, site: Site, load?: ModuleLoader) {
    this.#config = config;
    this.#site = site;
    this.#load = load;
    this.#metrics = new DnssecMetrics(site.metrics);
    this.answers = site.shared("dnssec answers", () => new PacedSteps(site.clock, SHARE));
  }

  async examine(): Promise<void> {
    await this.#readKeys(({ from }) => from === "file");
  }

  async start(): Promise<void> {
    const { zones } = this.#config.zones;
    const keys = await this.#readKeys(() => true);
    if (keys.length === 0) return;
    for (const zone of zones)
      this.#keys.set(zone, rolesOf(keys.filter(({ owner }) => zone.isAtOrBelow(owner))));
    const longest = Math.max(...keys.map(({ signatureOctets }) => signatureOctets));
    const store = new SignatureStore(this.#config.cache_capacity, longest);
    const labels = this.#site.block.listeners().map(({ label }) => label);
    const show = () => this.#metrics.showStore(labels, store);
    this.#signer = new Signer(store, this.#site.clock, show);
    show();
  }

  /** @throws SetupError if a key cannot be read, or belongs to no zone */
  async #readKeys(isWanted: (line: DnssecConfig["key"][number]) => boolean): Promise<KeyPair[]> {
    const { zones } = this.#config.zones;
    const keys: KeyPair[] = [];
    for (const { from, name } of this.#config.key.filter(isWanted)) {
      for (const word of name) {
        const key = await (from === "file"
          ? readKeyFiles(this.#site.resolvePath(word))
          : readSecretKey(word, this.#load));
        if (!zones.some((zone) => zone.isAtOrBelow(key.owner)))
          throw new SetupError(`key ${key.owner} (keyid: ${key.tag}) can not sign any of the zones`);
        if (key.algorithm.number === 14)
          this.#site.log.warning(
            `key ${key.owner} (keyid: ${key.tag}): signatures of ECDSAP384SHA384 take 15 times the time of ECDSAP256SHA256`,
          );
        keys.push(key);
      }
    }
    return keys;
  }

  readonly handle: Handler = (query, next) => {
    const signer = this.#signer;
    if (signer === undefined || query.opcode !== Opcode.QUERY) return next(query);
    const zone = this.#config.zones.matchQuery(query);
    if (zone === undefined || query.type === RecordType.AXFR || query.type === RecordType.IXFR)
      return next(query);
    // NXNAME appears only in denials (RFC 9824 section 3.5).
    if (this.#config.compact && query.type === NXNAME)
      return query.reply({ rcode: Rcode.FORMERR, ...(query.hasEdns && { edns: NO_SUCH_TYPE }) });
    if (query.type === RecordType.DNSKEY && zone.equals(query.name))
      return this.#publicKeys(query, zone, signer);
    if (!query.dnssecOk) return next(query);
    const outcome = next(query);
    if (outcome instanceof Promise)
      return outcome.then((settled) => this.#sign(settled, query, zone, signer));
    return this.#sign(outcome, query, zone, signer);
  };

  #publicKeys(query: Query, zone: Name, signer: Signer): Outcome | Promise<Outcome> {
    const keys = this.#keys.get(zone)?.all ?? [];
    const records = keys.map(({ record }) => DNSKEY.create(zone, record.ttl, record.data));
    const reply = query.reply({ authoritative: true, answer: records });
    if (!query.dnssecOk || records.length === 0) return reply;
    const work = new SigningWork(query, signer, this);
    return work.finish(reply, { answer: work.signed(records), authority: [], additional: [] });
  }

  #sign(outcome: Outcome, query: Query, zone: Name, signer: Signer): Outcome | Promise<Outcome> {
    if (outcome.kind !== "reply") return outcome;
    const { rcode } = outcome;
    if (rcode !== Rcode.NOERROR && rcode !== Rcode.NXDOMAIN) return outcome;
    const work = new SigningWork(query, signer, this);
    const { answer, authority, additional } = outcome;
    const delegation = delegationOf(outcome) ?? this.#delegationBehindAlias(outcome, query);
    if (delegation !== undefined) return this.#delegation(outcome, delegation, work);
    const denied = deniedName(outcome, query);
    const soa = authority.find((record) => SOA.is(record));
    const isProvable =
      denied !== undefined &&
      soa !== undefined &&
      !isDenied(authority) &&
      denied.isAtOrBelow(soa.name) &&
      this.zoneFor(soa.name) !== undefined;
    if (!isProvable)
      return work.finish(outcome, {
        answer: work.signed(answer),
        authority: work.signed(authority),
        additional: work.signed(additional),
      });
    const isCompact = this.#config.compact && rcode === Rcode.NXDOMAIN;
    // A client that sets CO understands compact denials (section 5.1); others would reject one with NXDOMAIN.
    if (!isCompact || !query.compactOk) outcome.rcode = Rcode.NOERROR;
    const proof = isCompact
      ? compactDenial(denied, soa.ttl)
      : blackLie(denied, zone.equals(denied), query.type, soa.ttl);
    query.trace?.note(`made an NSEC record to deny ${denied}`);
    // CoreDNS puts the signature first, here and at a delegation.
    const signedProof = [...work.signatures([proof]), proof];
    if (query.type === RecordType.NSEC && answer.length === 0)
      return work.finish(outcome, { answer: signedProof, authority: [], additional: [] });
    return work.finish(outcome, {
      answer: work.signed(answer),
      authority: [...work.signed(authority), ...signedProof],
      additional: work.signed(additional),
    });
  }

  /**
   * Of a delegation only the DS records belong to this zone (RFC 4035 section 2.2); without DS records, their absence
   * is proven.
   */
  #delegation(reply: Reply, delegated: ResourceRecord, work: SigningWork): Outcome | Promise<Outcome> {
    const { authority, additional, answer } = reply;
    const signers = authority.filter(({ type }) => type === RecordType.DS);
    if (isDenied(authority)) return reply;
    if (this.zoneFor(delegated.name) === undefined) return reply;
    let proof: Piece[];
    if (signers.length > 0) proof = work.signatures(signers);
    else {
      const denial = unsignedDelegation(delegated.name, delegated.ttl);
      proof = [...work.signatures([denial]), denial];
    }
    return work.finish(reply, {
      answer: work.signed(answer),
      authority: [...authority, ...proof],
      additional,
    });
  }

  /**
   * The first NS record of a referral at the end of a chain of aliases, not the NS records of a zone itself beside an
   * answer.
   */
  #delegationBehindAlias(reply: Reply, query: Query): ResourceRecord | undefined {
    const { rcode, answer, authority } = reply;
    if (rcode !== Rcode.NOERROR || answer.length === 0) return undefined;
    if (authority.some(({ type }) => type === RecordType.SOA)) return undefined;
    const found = authority.find(({ type }) => type === RecordType.NS);
    if (found === undefined || this.zoneFor(found.name)?.equals(found.name) === true) return undefined;
    return deniedName(reply, query)?.isAtOrBelow(found.name) === true ? found : undefined;
  }

  /** The zone of a record's owner, if there are keys for it. */
  zoneFor(owner: Name): Name | undefined {
    const zone = this.#config.zones.match(owner);
    return zone !== undefined && (this.#keys.get(zone)?.all.length ?? 0) > 0 ? zone : undefined;
  }

  keysFor(zone: Name, type: number): readonly KeyPair[] {
    const keys = this.#keys.get(zone);
    return (type === RecordType.DNSKEY ? keys?.keySigning : keys?.zoneSigning) ?? [];
  }

  countersFor(label: string) {
    return this.#metrics.counters(label);
  }
}

/** Collects the signatures of one reply, and completes the reply when all are ready. */
class SigningWork implements SignatureWaiter, PacedStep {
  following: PacedStep | undefined;
  readonly #query: Query;
  readonly #signer: Signer;
  readonly #plugin: OnlineSigning;
  #missing = 0;
  #fault: Error | undefined;
  /** The reply that waits for signatures, and the query that waits for it. */
  #unfinished:
    | { readonly reply: Reply; readonly sections: Sections; readonly resolve: (outcome: Outcome) => void }
    | undefined;

  constructor(query: Query, signer: Signer, plugin: OnlineSigning) {
    this.#query = query;
    this.#signer = signer;
    this.#plugin = plugin;
  }

  /** The records of a section, followed by the missing signatures. */
  signed(section: readonly ResourceRecord[]): Piece[] {
    return [...section, ...this.signatures(section)];
  }

  signatures(section: readonly ResourceRecord[]): Piece[] {
    const counters = this.#plugin.countersFor(this.#query.listener.label);
    const pieces: Piece[] = [];
    for (const rrset of rrsetsOf(section)) {
      const [first] = rrset;
      if (first === undefined || first.type === RecordType.RRSIG) continue;
      const zone = this.#plugin.zoneFor(first.name);
      if (zone === undefined || isSigned(section, first)) continue;
      for (const key of this.#plugin.keysFor(zone, first.type)) {
        if (this.#fault !== undefined) return pieces;
        try {
          const piece = this.#signer.sign(rrset, zone, key, counters, this);
          if (piece instanceof LateSignature) this.#missing++;
          pieces.push(piece);
        } catch (error) {
          this.#fault = error instanceof Error ? error : new Error(String(error));
        }
      }
    }
    return pieces;
  }

  finish(reply: Reply, sections: Sections): Outcome | Promise<Outcome> {
    if (this.#missing === 0 || this.#fault !== undefined) return this.#outcome(reply, sections);
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    this.#unfinished = { reply, sections, resolve };
    return promise;
  }

  settled(fault: Error | undefined): void {
    this.#fault ??= fault;
    this.#missing--;
    if (this.#missing === 0 && this.#unfinished !== undefined) this.#plugin.answers.add(this);
  }

  run(): void {
    if (this.#unfinished === undefined) return;
    const { reply, sections, resolve } = this.#unfinished;
    try {
      resolve(this.#outcome(reply, sections));
    } catch (error) {
      resolve(this.#failure(error));
    }
  }

  #outcome(reply: Reply, { answer, authority, additional }: Sections): Outcome {
    if (this.#fault !== undefined) return this.#failure(this.#fault);
    reply.replaceRecords({
      answer: answer.map(recordOf),
      authority: authority.map(recordOf),
      additional: additional.map(recordOf),
    });
    return reply;
  }

  #failure(error: unknown): Outcome {
    return this.#query.fail(Rcode.SERVFAIL, error instanceof Error ? error : new Error(String(error)));
  }
}

function recordOf(piece: Piece): ResourceRecord {
  return piece instanceof LateSignature ? piece.record : piece;
}

/** The set was signed behind this plugin: by an internal lookup, or in a file. */
function isSigned(section: readonly ResourceRecord[], { name, type }: ResourceRecord): boolean {
  return section.some(
    (record) => RRSIG.is(record) && record.data.typeCovered === type && record.name.equals(name),
  );
}

/** The denial has a proof already: from the lookup that followed an alias, or from a signed file. */
function isDenied(authority: readonly ResourceRecord[]): boolean {
  return authority.some(({ type }) => type === RecordType.NSEC || type === RecordType.NSEC3);
}

function rolesOf(keys: readonly KeyPair[]): ZoneKeys {
  const entryPoints = keys.filter(({ isEntryPoint }) => isEntryPoint);
  const others = keys.filter(({ isEntryPoint }) => !isEntryPoint);
  if (entryPoints.length === 0 || others.length === 0)
    return { all: keys, keySigning: keys, zoneSigning: keys };
  return { all: keys, keySigning: entryPoints, zoneSigning: others };
}

/** The first NS record of a referral. */
function delegationOf({ rcode, answer, authority }: Reply): ResourceRecord | undefined {
  if (rcode !== Rcode.NOERROR || answer.length > 0) return undefined;
  if (authority.some(({ type }) => type === RecordType.SOA)) return undefined;
  return authority.find(({ type }) => type === RecordType.NS);
}

/** The name that a denial is about: the query's, or the end of its aliases. */
function deniedName({ answer, rcode }: Reply, query: Query): Name | undefined {
  let { name } = query;
  for (let links = 0; links <= answer.length; links++) {
    const alias = answer.find((record) => CNAME.is(record) && record.name.equals(name));
    if (alias === undefined || !CNAME.is(alias)) break;
    if (query.type === RecordType.CNAME) return undefined;
    name = alias.data.target;
  }
  const isAnswered = answer.some(
    ({ type, name: owner }) =>
      (type === query.type || query.type === RecordType.ANY) &&
      type !== RecordType.CNAME &&
      owner.equals(name),
  );
  return isAnswered && rcode === Rcode.NOERROR ? undefined : name;
}
