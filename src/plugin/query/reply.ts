/**
 * A reply while it is made. Its records exist as values, as encoded octets, or both: they are decoded once, if a
 * plugin reads them; otherwise the octets are passed on.
 *
 * The shell (rcode, flags, TTL, OPT) belongs to one query and may be changed on the way back to the client. Its
 * contents (records, encoded sections) may be shared with a cache or a store, and are replaced, never changed in
 * place.
 */
import { type Edns, OPT_FIXED_OCTETS } from "../../dns/edns.ts";
import { EncodedSections, NO_SECTIONS, type RecordSections } from "../../dns/encoded-sections.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import type { Asked } from "../message/asked.ts";
import { echoedOptions, optionsLength } from "../message/echoed-options.ts";
import type { AnswerBasis } from "./repetition.ts";

/** The parts of a reply; those that are left out are empty, and the rcode is NOERROR. */
export interface ReplyContent {
  /** A number of `Rcode`. */
  readonly rcode?: number;
  /** AA. */
  readonly authoritative?: boolean;
  /** RA; the server itself never sets it (docs/spec/coredns-behaviour.md#replies). */
  readonly recursionAvailable?: boolean;
  /** AD. */
  readonly authenticData?: boolean;
  /** TC; set by the server as well when records do not fit. */
  readonly truncated?: boolean;
  /** The records that answer the question. */
  readonly answer?: readonly ResourceRecord[];
  /** The zone's SOA record for a denial, its NS records for a delegation. */
  readonly authority?: readonly ResourceRecord[];
  /** Addresses that the client will need next. The server adds OPT. */
  readonly additional?: readonly ResourceRecord[];
  /** Replaces the three sections. */
  readonly encoded?: EncodedSections;
  /** OPT of the reply. Without one the server makes it if the client sent OPT. */
  readonly edns?: Edns;
}

const NO_TTL = -1;

/** A reply to one query. Its records may be shared: replace them, and change the rest in place. */
export class Reply {
  /** Tells it from the other outcomes. */
  readonly kind = "reply";
  /** The query of this reply: the encoded octets were made for its question. */
  query: Asked;
  /** A number of `Rcode`. */
  rcode: number;
  /** AA, TC, RA and AD bits; the server adds QR and the bits that it copies from the query. */
  flags: number;
  /** OPT of the reply; `undefined` lets the server make it if the client sent one. */
  edns: Edns | undefined;
  /** Name of the plugin that answered; the chain fills it in. */
  plugin: string | undefined = undefined;
  /**
   * If not 0, the addresses of an RRset are shuffled when the reply is written, with this number as seed
   * (loadbalance).
   */
  shuffle = 0;
  /**
   * The data that the reply depends on, if it may be repeated. Valid until the next call of the answering plugin.
   * @internal
   */
  basis: AnswerBasis | undefined = undefined;
  #records: RecordSections | undefined;
  #encoded: EncodedSections | undefined;
  #ttl = NO_TTL;

  constructor(query: Asked, content: ReplyContent = {}) {
    this.query = query;
    this.rcode = content.rcode ?? Rcode.NOERROR;
    this.flags =
      (content.authoritative === true ? Flag.AA : 0) |
      (content.recursionAvailable === true ? Flag.RA : 0) |
      (content.authenticData === true ? Flag.AD : 0) |
      (content.truncated === true ? Flag.TC : 0);
    this.edns = content.edns;
    this.#encoded = content.encoded;
    this.#records =
      content.encoded === undefined
        ? {
            answer: content.answer ?? NONE,
            authority: content.authority ?? NONE,
            additional: content.additional ?? NONE,
          }
        : undefined;
  }

  /**
   * A reply of encoded octets. Equivalent to the constructor, without an options object: for plugins that answer most
   * queries of a server.
   * @param flags AA, TC, RA and AD bits
   * @param ttl seconds for all records, -1 if each keeps its own TTL
   * @internal
   */
  static fromEncoded(
    query: Asked,
    encoded: EncodedSections,
    rcode: number,
    flags: number,
    ttl: number = NO_TTL,
  ): Reply {
    const reply = new Reply(query, ENCODED);
    reply.#encoded = encoded;
    reply.rcode = rcode;
    reply.flags = flags;
    reply.#ttl = ttl;
    return reply;
  }

  /** AA: the answer comes from the zone itself. */
  get authoritative(): boolean {
    return (this.flags & Flag.AA) !== 0;
  }

  /** TC: records are missing, so that the client asks again over TCP. */
  get truncated(): boolean {
    return (this.flags & Flag.TC) !== 0;
  }

  /** Sets or clears a bit of `Flag`. */
  setFlag(bit: number, on: boolean): void {
    this.flags = on ? this.flags | bit : this.flags & ~bit;
  }

  /** The answer section as values. */
  get answer(): readonly ResourceRecord[] {
    return this.records.answer;
  }

  /** The authority section as values. */
  get authority(): readonly ResourceRecord[] {
    return this.records.authority;
  }

  /** Without OPT. */
  get additional(): readonly ResourceRecord[] {
    return this.records.additional;
  }

  /**
   * The records as values.
   * @throws WireError if a reply from elsewhere has malformed RDATA
   */
  get records(): RecordSections {
    const { bytes, questionEnd } = this.query;
    // Values may refer to the octets.
    this.#encoded?.keep();
    this.#records ??= withTtl(
      this.#encoded?.decode(bytes.subarray(12, questionEnd)) ?? NO_SECTIONS,
      this.#ttl,
    );
    return this.#records;
  }

  /** Replaces the sections that are given, and keeps the others. */
  replaceRecords(sections: Partial<RecordSections>): void {
    this.#records = { ...this.records, ...sections };
    // The next reply might have other records.
    this.basis = undefined;
    this.#encoded = undefined;
    this.#ttl = NO_TTL;
  }

  /** Drops authority and additional, without decoding. */
  keepAnswerOnly(): void {
    if (this.#records !== undefined) this.#records = { ...NO_SECTIONS, answer: this.#records.answer };
    this.#encoded = this.#encoded?.answerOnly();
  }

  /** Seconds that replace the TTL of every record, -1 if each keeps its own. */
  get uniformTtl(): number {
    return this.#ttl;
  }

  /** Sets the TTL of every record, in seconds. */
  setUniformTtl(ttl: number): void {
    this.#ttl = ttl;
    if (this.#records === undefined) return;
    if (this.#encoded === undefined) this.#records = withTtl(this.#records, ttl);
    else this.#records = undefined;
  }

  /**
   * The records as octets for the query's own question; records that do not fit into any message are left out and TC
   * is set. The octets do not change while they are referenced.
   */
  get encoded(): EncodedSections {
    return this.sections.keep();
  }

  /**
   * Like {@link encoded}, for a caller that keeps no reference: the cache lends the octets of a hit, and takes them
   * back when the reply is sent. That saves a copy per query.
   * @internal
   */
  get sections(): EncodedSections {
    if (this.#encoded === undefined) {
      const { encoded, complete } = EncodedSections.encode(this.query.question, this.records);
      if (!complete) this.flags |= Flag.TC;
      this.#encoded = encoded;
    }
    return this.#encoded;
  }

  /**
   * The reply has been sent or dropped, and is not read again: returns borrowed octets.
   * @internal
   */
  release(): void {
    const lender = this.#encoded?.lender;
    if (lender === undefined) return;
    this.#encoded = undefined;
    this.#records ??= NO_SECTIONS;
    lender.takeBack();
  }

  /**
   * Makes this the answer to the query from which the answered query was derived. The chain calls it for each plugin
   * that derives queries. The octets stay the same if the names differ only in case.
   * @throws WireError if a reply from elsewhere has malformed RDATA
   * @internal
   */
  answerFor(query: Asked): void {
    const asked = this.query;
    if (asked.questionOwner === query.questionOwner) return;
    const fits =
      this.#encoded === undefined ||
      (this.#encoded.start === query.questionEnd && asked.name.equals(query.name));
    if (fits) this.query = query;
    else this.reencodeFor(query);
  }

  /**
   * Replaces the records with octets that are encoded for the question of `query`, which this answers from now on.
   * @internal
   */
  replaceEncoded(query: Asked, encoded: EncodedSections): void {
    this.#encoded?.lender?.takeBack();
    this.query = query;
    this.#encoded = encoded;
    this.#records = undefined;
  }

  /**
   * Encodes the records again for a query of another name: pointers to the question would be wrong.
   * @internal
   */
  reencodeFor(query: Asked): void {
    const { encoded, complete } = EncodedSections.encode(query.question, this.records);
    if (!complete) this.flags |= Flag.TC;
    this.query = query;
    this.#encoded = encoded;
    this.#ttl = NO_TTL;
  }

  /** Encodes the records again if name compression makes them shorter: another server may not compress. */
  compress(): void {
    const { encoded, complete } = EncodedSections.encode(this.query.question, this.records);
    if (!complete || encoded.end >= this.sections.end) return;
    this.#encoded = encoded;
    this.#ttl = NO_TTL;
  }

  /** Whether the octets exist already, so that reading them is cheap. */
  get isEncoded(): boolean {
    return this.#encoded !== undefined;
  }

  /** Size of the message in octets, OPT included, before any truncation. */
  get size(): number {
    const { root } = this.query;
    // A client that sent no OPT gets none (RFC 6891 section 7).
    if (!root.hasEdns) return this.sections.end;
    const options = this.edns?.options ?? echoedOptions(root);
    return this.sections.end + OPT_FIXED_OCTETS + optionsLength(options);
  }

  /** The same answer for another query with an equal question, as a new reply. */
  forQuery(query: Asked): Reply {
    const copy = new Reply(query, { encoded: this.encoded });
    copy.rcode = this.rcode;
    copy.flags = this.flags;
    copy.edns = this.edns;
    copy.plugin = this.plugin;
    copy.#ttl = this.#ttl;
    return copy;
  }
}

const NONE: readonly ResourceRecord[] = Object.freeze([]);

/** Makes the constructor create no records. */
const ENCODED: ReplyContent = Object.freeze({ encoded: EncodedSections.empty(0) });

function withTtl(sections: RecordSections, ttl: number): RecordSections {
  if (ttl === NO_TTL) return sections;
  const change = (record: ResourceRecord): ResourceRecord => ({ ...record, ttl });
  return {
    answer: sections.answer.map(change),
    authority: sections.authority.map(change),
    additional: sections.additional.map(change),
  };
}
