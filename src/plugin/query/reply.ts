/**
 * A reply in the making. Its records exist as values, as encoded octets, or both: a plugin that needs records asks for
 * them and they are decoded once; a plugin that does not passes on octets.
 *
 * The shell (rcode, flags, TTL, OPT) belongs to one query and may be changed on the way back to the client. What it holds
 * (records, encoded sections) may be shared with a cache or a store, and is replaced, never changed in place.
 */
import { type Edns, OPT_FIXED_OCTETS } from "../../dns/edns.ts";
import { EncodedSections, NO_SECTIONS, type RecordSections } from "../../dns/encoded-sections.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import type { Asked } from "../message/asked.ts";
import { echoedOptions, optionsLength } from "../message/echoed-options.ts";
import type { AnswerBasis } from "./repetition.ts";

export interface ReplyContent {
  readonly rcode?: number;
  /** AA. */
  readonly authoritative?: boolean;
  /** RA; the server itself never sets it (docs/spec/coredns-behaviour.md#replies). */
  readonly recursionAvailable?: boolean;
  /** AD. */
  readonly authenticData?: boolean;
  /** TC; set by the server as well when records do not fit. */
  readonly truncated?: boolean;
  readonly answer?: readonly ResourceRecord[];
  readonly authority?: readonly ResourceRecord[];
  readonly additional?: readonly ResourceRecord[];
  /** In place of the three sections. */
  readonly encoded?: EncodedSections;
  /** OPT of the reply. Without one the server makes it when the client sent OPT. */
  readonly edns?: Edns;
}

const NO_TTL = -1;

export class Reply {
  readonly kind = "reply";
  /** The query that this answers: its question is the one that the encoded octets were made for. */
  query: Asked;
  rcode: number;
  /** AA, TC, RA and AD bits; the server adds QR and what it copies from the query. */
  flags: number;
  edns: Edns | undefined;
  /** Name of the plugin that answered; the chain fills it in. */
  plugin: string | undefined = undefined;
  /** Not 0: addresses of an RRset change places when the reply is written, guided by this number (loadbalance). */
  shuffle = 0;
  /**
   * What it rests on, where it may be given again. It holds until the plugin that answered is asked the next time.
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
   * A reply made of octets at hand. It is what the constructor makes of the same facts, without an object to carry them: for plugins
   * that answer most queries of a server.
   * @param flags AA, TC, RA and AD bits
   * @param ttl seconds that all records show, -1 when each shows its own
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

  get authoritative(): boolean {
    return (this.flags & Flag.AA) !== 0;
  }

  get truncated(): boolean {
    return (this.flags & Flag.TC) !== 0;
  }

  setFlag(bit: number, on: boolean): void {
    this.flags = on ? this.flags | bit : this.flags & ~bit;
  }

  get answer(): readonly ResourceRecord[] {
    return this.records.answer;
  }

  get authority(): readonly ResourceRecord[] {
    return this.records.authority;
  }

  /** Without OPT. */
  get additional(): readonly ResourceRecord[] {
    return this.records.additional;
  }

  /**
   * The records as values.
   * @throws WireError when a reply from elsewhere holds malformed RDATA
   */
  get records(): RecordSections {
    const { bytes, questionEnd } = this.query;
    // Values may lean on the octets.
    this.#encoded?.keep();
    this.#records ??= withTtl(
      this.#encoded?.decode(bytes.subarray(12, questionEnd)) ?? NO_SECTIONS,
      this.#ttl,
    );
    return this.#records;
  }

  replaceRecords(sections: Partial<RecordSections>): void {
    this.#records = { ...this.records, ...sections };
    // Another time it might be other records.
    this.basis = undefined;
    this.#encoded = undefined;
    this.#ttl = NO_TTL;
  }

  /** Leaves out authority and additional, without decoding. */
  keepAnswerOnly(): void {
    if (this.#records !== undefined) this.#records = { ...NO_SECTIONS, answer: this.#records.answer };
    this.#encoded = this.#encoded?.answerOnly();
  }

  /** Seconds that every record shows instead of its own TTL, -1 when each shows its own. */
  get uniformTtl(): number {
    return this.#ttl;
  }

  /** Shows every record with this TTL in seconds. */
  setUniformTtl(ttl: number): void {
    this.#ttl = ttl;
    if (this.#records === undefined) return;
    if (this.#encoded === undefined) this.#records = withTtl(this.#records, ttl);
    else this.#records = undefined;
  }

  /**
   * The records as octets for the query's own question; records that no message can hold are left out and TC is set. They stay as they are
   * for as long as anybody holds them.
   */
  get encoded(): EncodedSections {
    return this.sections.keep();
  }

  /**
   * As {@link encoded}, for who looks at them while the reply passes and holds on to nothing: the cache lends the octets of a hit, and has
   * them back once the reply is sent. That spares a copy for each query.
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
   * It is sent or dropped, and nobody looks at it again: what was lent goes back.
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
   * Makes it the answer to a query with another question: the one from which the query was derived that this answers. The chain does so for
   * each plugin that derives queries. Octets stay as they are where the names differ in case alone.
   * @throws WireError when a reply from elsewhere holds malformed RDATA
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
   * Puts other octets in place of the records, encoded for the question of `query`, which this answers from now on.
   * @internal
   */
  replaceEncoded(query: Asked, encoded: EncodedSections): void {
    this.#encoded?.lender?.takeBack();
    this.query = query;
    this.#encoded = encoded;
    this.#records = undefined;
  }

  /**
   * Encodes the records again for a query of another name: pointers to the question would lead astray.
   * @internal
   */
  reencodeFor(query: Asked): void {
    const { encoded, complete } = EncodedSections.encode(query.question, this.records);
    if (!complete) this.flags |= Flag.TC;
    this.query = query;
    this.#encoded = encoded;
    this.#ttl = NO_TTL;
  }

  /** Encodes the records again if compression of names makes them shorter: those of another server may be spelled out. */
  compress(): void {
    const { encoded, complete } = EncodedSections.encode(this.query.question, this.records);
    if (!complete || encoded.end >= this.sections.end) return;
    this.#encoded = encoded;
    this.#ttl = NO_TTL;
  }

  /** True when the octets exist already, and asking for them costs nothing. */
  get isEncoded(): boolean {
    return this.#encoded !== undefined;
  }

  /** Size of the message in octets, OPT included, before any truncation. */
  get size(): number {
    const { root } = this.query;
    // No OPT goes to a client that sent none (RFC 6891 section 7).
    if (!root.hasEdns) return this.sections.end;
    const options = this.edns?.options ?? echoedOptions(root);
    return this.sections.end + OPT_FIXED_OCTETS + optionsLength(options);
  }

  /** The same answer for another query with an equal question, with a shell of its own. */
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

/** Has the constructor make no records. */
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
