/** Reads finished queries from a ring, at its own pace. */
import { octetAt } from "../../dns/octets.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";
import type { TransportName } from "../message/endpoint.ts";
import {
  Bit,
  Control,
  Field,
  NO_TTL,
  NOTHING_SENT,
  RING_START,
  TOTALS_AT,
  Total,
  TRANSPORTS,
  UNIT,
  WORD_OCTETS,
  WORD_TABLE,
} from "./query-ring.ts";

/** One finished query. A reader reuses one object: it is valid until the visitor returns. */
export class FinishedQuery {
  /** Milliseconds of the Unix epoch at which it arrived. */
  time = 0;
  /** Milliseconds from its arrival to its answer. */
  duration = 0;
  type = 0;
  class = 0;
  /** `undefined` where the client got no reply. */
  rcode: number | undefined = undefined;
  /** The second header word of the query, and AA, TC, RA and AD of the reply. */
  queryFlags = 0;
  replyFlags = 0;
  id = 0;
  port = 0;
  querySize = 0;
  replySize = 0;
  /** The plugin that answered, empty without an answer. */
  plugin = "";
  /** `dns://:53`. */
  listener = "";
  transport: TransportName = "udp";
  /** Records of the answer section, 255 for more. */
  answers = 0;
  /** Seconds, of the first record; `undefined` without records. */
  ttl: number | undefined = undefined;
  hasEdns = false;
  dnssecOk = false;
  /** Dropped because too many queries were pending. */
  wasShed = false;
  /** The number of queries that it represents, if only some are written. */
  weight = 1;
  /** Offset of the entry in its ring: with the ring's number it identifies the query while the entry exists. */
  place = 0;
  /** Memory of {@link clientStart} and the following fields. */
  octets: Uint8Array = NOTHING;
  /** The client's address, 4 or 16 octets. */
  clientStart = 0;
  /** The name in wire form, as the client spelled it, up to {@link nameEnd}. */
  nameStart = 0;
  nameEnd = 0;

  get client(): string {
    return formatIpAddress(this.octets.slice(this.clientStart, this.nameStart));
  }
}

const NOTHING = new Uint8Array(0);

export class QueryReader {
  /** Queries that were overwritten before they were read. */
  missed = 0;
  readonly #control: Int32Array;
  readonly #totals: Float64Array;
  readonly #octets: Uint8Array;
  readonly #view: DataView;
  readonly #units: number;
  readonly #query = new FinishedQuery();
  readonly #words: string[] = [];
  readonly #beforeRead: () => void;
  #place: number;

  /**
   * @param fromOldest starts with the oldest present entry
   * @param beforeRead makes a writer in the same thread finish its pending work
   */
  constructor(buffer: SharedArrayBuffer, fromOldest = false, beforeRead: () => void = () => undefined) {
    this.#control = new Int32Array(buffer, 0, 8);
    this.#totals = new Float64Array(buffer, TOTALS_AT, 4);
    this.#octets = new Uint8Array(buffer);
    this.#view = new DataView(buffer);
    this.#units = Math.floor((buffer.byteLength - RING_START) / UNIT);
    this.#beforeRead = beforeRead;
    this.#query.octets = this.#octets;
    this.#place = Atomics.load(this.#control, fromOldest ? Control.TAIL : Control.HEAD);
  }

  /** Queries that finished since the ring was made, written or not. */
  get finished(): number {
    return this.#totals[Total.FINISHED] ?? 0;
  }

  /**
   * Requests some `rate` queries per second from now on, which samples them if there are more; 0 for all. Failed
   * queries are always written. The writer adapts the sampling itself, after each half second or half a second's
   * worth of queries.
   */
  set wantedRate(rate: number) {
    Atomics.store(this.#control, Control.WANTED, Math.max(0, Math.min(2 ** 31 - 1, Math.round(rate))));
  }

  /** One query in this many is written now. */
  get interval(): number {
    return Math.max(1, Atomics.load(this.#control, Control.INTERVAL));
  }

  /** Starts again with the oldest present query. */
  rewind(): void {
    this.#place = Atomics.load(this.#control, Control.TAIL);
  }

  /** Skips everything present. */
  skip(): void {
    this.#place = Atomics.load(this.#control, Control.HEAD);
  }

  /**
   * Visits the queries written since the last call, oldest first.
   * @param most entries in this call
   * @returns whether everything has been read
   */
  read(visit: (query: FinishedQuery) => void, most: number): boolean {
    this.#beforeRead();
    // After a burst few queries arrive: without this the next written query would be late.
    if (this.interval > 1) Atomics.store(this.#control, Control.LEFT, 1);
    const head = Atomics.load(this.#control, Control.HEAD);
    for (let count = 0; this.#place !== head; ) {
      if (this.#wasOverwritten()) {
        this.missed++;
        this.#place = Atomics.load(this.#control, Control.TAIL);
        continue;
      }
      const unit = (this.#place >>> 0) % this.#units;
      const at = RING_START + unit * UNIT;
      const length = this.#view.getUint16(at, true);
      if (length === 0) {
        this.#place = (this.#place + this.#units - unit) | 0;
        continue;
      }
      if (count++ >= most) return false;
      if (!this.#take(at)) return true;
      // Another thread may have overwritten it.
      if (this.#wasOverwritten()) continue;
      visit(this.#query);
      this.#place = (this.#place + length) | 0;
    }
    return true;
  }

  #wasOverwritten(): boolean {
    return ((this.#place - Atomics.load(this.#control, Control.TAIL)) | 0) < 0;
  }

  /** @returns false for a query whose end is not known yet */
  #take(at: number): boolean {
    const view = this.#view;
    const duration = view.getFloat32(at + Field.DURATION, true);
    if (duration < 0) return false;
    const query = this.#query;
    const bits = octetAt(this.#octets, at + Field.BITS);
    const rcode = view.getUint16(at + Field.RCODE, true);
    const ttl = view.getUint32(at + Field.TTL, true);
    query.place = this.#place;
    query.duration = duration;
    query.time = (this.#totals[Total.EPOCH] ?? 0) + view.getFloat64(at + Field.RECEIVED, true);
    query.type = view.getUint16(at + Field.TYPE, true);
    query.class = view.getUint16(at + Field.CLASS, true);
    query.rcode = rcode === NOTHING_SENT ? undefined : rcode;
    query.queryFlags = view.getUint16(at + Field.QUERY_FLAGS, true);
    query.replyFlags = view.getUint16(at + Field.REPLY_FLAGS, true);
    query.id = view.getUint16(at + Field.ID, true);
    query.port = view.getUint16(at + Field.PORT, true);
    query.querySize = view.getUint16(at + Field.QUERY_SIZE, true);
    query.replySize = view.getUint16(at + Field.REPLY_SIZE, true);
    query.plugin = this.#word(octetAt(this.#octets, at + Field.PLUGIN));
    query.listener = this.#word(octetAt(this.#octets, at + Field.LISTENER));
    query.transport = TRANSPORTS[octetAt(this.#octets, at + Field.TRANSPORT)] ?? "udp";
    query.answers = octetAt(this.#octets, at + Field.ANSWERS);
    query.ttl = ttl === NO_TTL ? undefined : ttl;
    query.hasEdns = (bits & Bit.EDNS) !== 0;
    query.dnssecOk = (bits & Bit.DNSSEC_OK) !== 0;
    query.wasShed = (bits & Bit.SHED) !== 0;
    query.weight = view.getUint16(at + Field.WEIGHT, true);
    query.clientStart = at + Field.CLIENT;
    query.nameStart = query.clientStart + ((bits & Bit.IPV6) !== 0 ? 16 : 4);
    query.nameEnd = query.nameStart + octetAt(this.#octets, at + Field.NAME_OCTETS);
    return true;
  }

  #word(number: number): string {
    const known = this.#words[number];
    if (known !== undefined) return known;
    if (number >= Atomics.load(this.#control, Control.WORDS)) return "";
    const at = WORD_TABLE + number * WORD_OCTETS;
    // TextDecoder rejects shared memory.
    const text = Buffer.from(this.#octets.slice(at + 1, at + 1 + octetAt(this.#octets, at))).toString();
    this.#words[number] = text;
    return text;
  }
}
