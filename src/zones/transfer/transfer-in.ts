/** Transfers a zone from a primary server: AXFR (RFC 5936) and IXFR (RFC 1995). */
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../../dns/message.ts";
import type { Name } from "../../dns/name.ts";
import { Rcode, RecordClass, rcodeName } from "../../dns/numbers.ts";
import { readU32, sameOctets } from "../../dns/octets.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { SOA } from "../../dns/record-table.ts";
import { canonicalData, plainData } from "../../dns/resource-record.ts";
import { TsigError } from "../../dns/tsig/exchange.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import { WireError } from "../../dns/wire-reader.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { isAsNew, type StartOfAuthority } from "../../plugin/contract/transfer.ts";
import type { UpstreamAddress } from "../../upstream/config/address.ts";
import {
  type MessageGuard,
  type MessageStreamOptions,
  messagesFor,
} from "../../upstream/tcp/message-stream.ts";
import type { StreamDialler } from "../../upstream/tcp/tcp-connection.ts";
import { ZoneChangeError } from "../changes/zone-changes.ts";
import { ZoneComparison } from "../changes/zone-comparison.ts";
import { type PlainRecord, RecordLog } from "../data/record-log.ts";
import { Zone } from "../data/zone.ts";
import type { ZoneChange } from "../data/zone-change.ts";
import { Added } from "../data/zone-records.ts";
import { soaRecord } from "../data/zone-transfer.ts";

/** Not every message of a transfer has to be signed, but the last one does (RFC 8945 section 5.3.1). */
export interface TransferGuard extends MessageGuard {
  /** Whether all messages so far are authenticated. */
  readonly isSettled: boolean;
}

export interface TransferInOptions {
  readonly apex: Name;
  readonly remote: UpstreamAddress;
  /** Default: plain TCP. */
  readonly dialler?: StreamDialler | undefined;
  /** The current zone: the primary is asked for the changes since its serial. */
  readonly current: Zone | undefined;
  /** Whether a large zone that arrives as a whole is compared with {@link current}: see {@link TransferredZone}. */
  readonly compares?: boolean;
  readonly clock: Clock;
  /** Of the query; should be unpredictable. */
  readonly id: number;
  /** Bytes that the zone may take, so that an endless transfer fails. */
  readonly limit: number;
  /** Makes the authentication for each exchange: a zone may be requested twice. */
  readonly guard?: (() => TransferGuard) | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly pause: () => Promise<void>;
}

/**
 * The result of a transfer: nothing newer, the whole zone, as itself or as its difference, or the steps from the known state to the
 * last.
 */
export type TransferredZone =
  | { readonly way: "same"; readonly serial: number }
  | { readonly way: "axfr"; readonly zone: Zone }
  | { readonly way: "axfr"; readonly change: ZoneChange }
  | { readonly way: "ixfr"; readonly changes: readonly ZoneChange[] };

/** The primary did not send a valid zone. */
export class TransferError extends Error {
  override readonly name = "TransferError";
  /** The rcode of the primary, if that is the error. */
  readonly rcode: number | undefined;

  constructor(message: string, rcode?: number) {
    super(message);
    this.rcode = rcode;
  }
}

const CONNECT_TIMEOUT = 5_000;
/** Milliseconds for each message. */
const MESSAGE_TIMEOUT = 10_000;
/** Milliseconds for all of them: a primary that sends a record now and then would otherwise block the check of others. */
const TRANSFER_TIMEOUT = 2 * 60 * 60 * 1_000;
/** Records between two pauses. */
const PORTION = 200;
/** Transferred octets per allowed byte of the zone: repeated records do not make a zone larger. */
const OCTETS_FOR_ONE = 2;
/** Minimum records for a comparison: two smaller zones fit into memory together. */
const LEAST_TO_COMPARE = 5_000;

/**
 * Requests the changes if there is a zone already, and the whole zone otherwise, or if the primary does not have the changes.
 * @throws TransferError, ExchangeError, or the guard's errors
 */
export async function transferIn(options: TransferInOptions): Promise<TransferredZone> {
  const { current } = options;
  if (current === undefined) return receive(options, undefined);
  try {
    return await receive(options, current);
  } catch (error) {
    // Servers refuse an unknown IXFR in many ways. If the changes do not fit, the whole zone is requested.
    if (!(error instanceof TransferError)) throw error;
    return await wholeZone(options);
  }
}

/** The whole zone, for callers that cannot use changes: "same" if it is no newer than the current one. */
export async function wholeZone(options: TransferInOptions): Promise<TransferredZone> {
  const { current } = options;
  const whole = await receive(options, undefined);
  if (whole.way !== "axfr" || current === undefined) return whole;
  const serial = "zone" in whole ? whole.zone.serial : serialOf(whole.change);
  return isAsNew(current.serial, serial) ? { way: "same", serial } : whole;
}

/**
 * The serial of the primary.
 * @throws as {@link transferIn}
 */
export async function serialOfPrimary(options: TransferInOptions): Promise<number> {
  const { apex } = options;
  const guard = options.guard?.();
  const question = { name: apex, type: RecordType.SOA, class: RecordClass.IN };
  const octets = encodeMessage(makeQuery(question, { id: options.id, flags: 0 }));
  for await (const reply of messagesFor(octets, streamOptions(options, guard))) {
    const { rcode, answer } = decode(reply);
    if (guard?.isSettled === false) throw new TsigError("the reply is not signed");
    if (rcode !== Rcode.NOERROR) throw new TransferError(`bad SOA rcode: ${rcode}`, rcode);
    const soa = answer.find((record) => SOA.is(record) && record.name.equals(apex));
    if (soa !== undefined && SOA.is(soa)) return soa.data.serial;
    throw new TransferError("the reply has no SOA record of the zone");
  }
  throw new TransferError("the primary does not answer SOA queries");
}

function streamOptions(options: TransferInOptions, guard: TransferGuard | undefined): MessageStreamOptions {
  const { remote, dialler, clock, signal } = options;
  return {
    remote,
    ...(dialler !== undefined && { dialler }),
    clock,
    guard,
    signal,
    connectTimeout: CONNECT_TIMEOUT,
    messageTimeout: MESSAGE_TIMEOUT,
  };
}

async function receive(options: TransferInOptions, current: Zone | undefined): Promise<TransferredZone> {
  const { apex, clock, pause } = options;
  const guard = options.guard?.();
  const type = current === undefined ? RecordType.AXFR : RecordType.IXFR;
  const query = makeQuery({ name: apex, type, class: RecordClass.IN }, { id: options.id, flags: 0 });
  const octets = encodeMessage({ ...query, authority: current === undefined ? [] : [soaRecord(current)] });
  const receiver = new ZoneReceiver(options, current);
  const deadline = clock.now() + TRANSFER_TIMEOUT;
  let octetsLeft = OCTETS_FOR_ONE * options.limit;
  for await (const octetsIn of messagesFor(octets, streamOptions(options, guard))) {
    octetsLeft -= octetsIn.length;
    if (octetsLeft < 0)
      throw new TransferError(`the transfer is longer than ${OCTETS_FOR_ONE * options.limit} octets`);
    if (clock.now() > deadline) throw new TransferError("the transfer has not ended in two hours");
    try {
      await receiver.take(decode(octetsIn), pause);
      if (receiver.isComplete) {
        if (guard?.isSettled === false) throw new TsigError("the last message of the transfer is not signed");
        return await receiver.finish(pause);
      }
      await receiver.pause(pause);
    } catch (error) {
      throw error instanceof ZoneChangeError ? new TransferError(error.message) : error;
    }
  }
  throw new TransferError("the transfer ended early");
}

function decode(octets: Uint8Array): Message {
  try {
    return decodeMessage(octets);
  } catch (error) {
    if (error instanceof WireError) throw new TransferError(`malformed message: ${error.message}`);
    throw error;
  }
}

/** The expected next record (RFC 1995 section 4). */
type Expectation = "first" | "second" | "all" | "removed" | "added" | "nothing";

class ZoneReceiver {
  readonly #apex: Name;
  readonly #current: Zone | undefined;
  /** The zone that a whole zone may be compared with. */
  readonly #known: Zone | undefined;
  readonly #limit: number;
  /** Receives a whole zone. */
  #zone: Zone | undefined;
  #comparison: ZoneComparison | undefined;
  #hasNameServer = false;
  #expects: Expectation = "first";
  #serial = 0;
  #stepSerial = 0;
  #first: ResourceRecord | undefined;
  #messages = 0;
  /** The steps of IXFR, and the incomplete one. */
  readonly #changes: ZoneChange[] = [];
  #removed = new RecordLog();
  #added = new RecordLog();
  #soa: PlainRecord | undefined;
  /** Of the steps. */
  #octets = 0;
  #lastSerial = 0;

  /** @param current the zone whose serial was sent to the primary */
  constructor({ apex, limit, compares, current: known }: TransferInOptions, current: Zone | undefined) {
    this.#apex = apex;
    this.#current = current;
    this.#limit = limit;
    if (compares === true && known !== undefined && known.recordCount >= LEAST_TO_COMPARE)
      this.#known = known;
  }

  get isComplete(): boolean {
    return this.#expects === "nothing";
  }

  async take(message: Message, pause: () => Promise<void>): Promise<void> {
    if (message.rcode !== Rcode.NOERROR)
      throw new TransferError(`bad xfr rcode: ${message.rcode} (${rcodeName(message.rcode)})`, message.rcode);
    const [question] = message.questions;
    if (question !== undefined && !question.name.equals(this.#apex))
      throw new TransferError(`the reply is about ${question.name}`);
    for (const [index, record] of message.answer.entries()) {
      if (index % PORTION === PORTION - 1) await this.pause(pause);
      this.#record(record);
    }
    this.#messages++;
    // A lone SOA record: nothing newer, or nothing more to send (RFC 1995 section 2).
    if (this.#messages === 1 && message.answer.length === 1 && this.#current !== undefined) {
      if (!isAsNew(this.#current.serial, this.#serial))
        throw new TransferError("the primary has a newer serial, and no changes that lead to it");
      this.#expects = "nothing";
    } else if (message.answer.length === 0) throw new TransferError("a message without records");
  }

  async pause(pause: () => Promise<void>): Promise<void> {
    if (this.#comparison?.isTooMuch === true) await this.#endComparison(pause);
    await (this.#comparison?.pause(pause) ?? this.#zone?.makeRoom(pause) ?? pause());
  }

  /** For a zone that is almost completely different, a new zone is better. */
  async #endComparison(pause: () => Promise<void>): Promise<void> {
    const zone = new Zone(this.#apex);
    if (this.#known !== undefined) zone.reserveAs(this.#known);
    await this.#comparison?.moveTo(zone, pause);
    this.#comparison = undefined;
    this.#zone = zone;
  }

  async finish(pause: () => Promise<void>): Promise<TransferredZone> {
    if (this.#changes.length > 0) return { way: "ixfr", changes: this.#changes };
    const comparison = this.#comparison;
    if ((comparison ?? this.#zone) !== undefined && !this.#hasNameServer)
      throw new TransferError("the zone has no NS records at its apex");
    if (comparison !== undefined) {
      const change = await comparison.finish(pause);
      if (change !== undefined) return { way: "axfr", change };
      await this.#endComparison(pause);
    }
    const zone = this.#zone;
    if (zone === undefined) return { way: "same", serial: this.#serial };
    if (!zone.hasSoa || zone.serial !== this.#serial)
      throw new TransferError("the zone does not have the serial that was promised");
    await zone.order(pause);
    return { way: "axfr", zone };
  }

  #record(record: ResourceRecord): undefined {
    if (record.class !== RecordClass.IN) throw new TransferError("a record of another class than IN");
    const isSoa = SOA.is(record);
    switch (this.#expects) {
      case "nothing":
        throw new TransferError("records after the last SOA record");
      case "first":
        if (!isSoa || !record.name.equals(this.#apex))
          throw new TransferError("the first record is not the SOA record of the zone");
        this.#serial = record.data.serial;
        this.#first = record;
        this.#expects = "second";
        return;
      case "second":
        return this.#second(record);
      case "all":
        if (isSoa && record.name.equals(this.#apex)) return this.#end(record);
        return this.#add(record);
      case "removed":
        if (!isSoa) return this.#log(this.#removed, record);
        this.#stepSerial = record.data.serial;
        this.#soa = plainOf(record);
        this.#expects = "added";
        return;
      case "added":
        if (!isSoa) return this.#log(this.#added, record);
        this.#closeStep();
        if (this.#stepSerial === this.#serial) return this.#end(record);
        if (record.data.serial !== this.#stepSerial)
          throw new TransferError(
            `a step from serial ${record.data.serial} follows one to ${this.#stepSerial}`,
          );
        this.#expects = "removed";
    }
  }

  #second(record: ResourceRecord): undefined {
    const current = this.#current;
    if (current !== undefined && isAsNew(current.serial, this.#serial))
      throw new TransferError("the primary sends a zone that is not newer");
    if (current !== undefined && SOA.is(record) && record.data.serial === current.serial) {
      this.#expects = "removed";
      return;
    }
    if (this.#known?.mayBegin === true) this.#comparison = new ZoneComparison(this.#known);
    else {
      this.#zone = new Zone(this.#apex);
      if (current !== undefined) this.#zone.reserveAs(current);
    }
    this.#expects = "all";
    if (this.#first !== undefined) this.#add(this.#first);
    this.#record(record);
  }

  #end(soa: StartOfAuthority): undefined {
    const { serial } = soa.data;
    if (serial !== this.#serial)
      throw new TransferError(`the zone begins with serial ${this.#serial} and ends with ${serial}`);
    const first = this.#first;
    if (first !== undefined && !sameOctets(canonicalData(first), canonicalData(soa)))
      throw new TransferError(
        `the zone begins with another SOA record of serial ${serial} than it ends with`,
      );
    this.#expects = "nothing";
  }

  #add(record: ResourceRecord): undefined {
    const [zone, comparison] = [this.#zone, this.#comparison];
    const data = plainData(record);
    const { type } = record;
    const { wire } = record.name;
    const ttl = record.ttl > MAX_TTL ? 0 : record.ttl;
    if (type === RecordType.NS && record.name.equals(this.#apex)) this.#hasNameServer = true;
    comparison?.take(wire, wire.length, type, ttl, data, data.length);
    const added = zone?.add(wire, wire.length, type, ttl, data, data.length);
    if (added === Added.TOO_LARGE)
      throw new TransferError(
        `${record.name} has more ${recordTypeName(type)} records than fit into a message`,
      );
    if ((comparison ?? zone ?? { size: 0 }).size > this.#limit)
      throw new TransferError(`the zone is larger than ${this.#limit} octets`);
  }

  #log(log: RecordLog, record: ResourceRecord): undefined {
    if (!record.name.isAtOrBelow(this.#apex)) return;
    log.addPlain(plainOf(record));
    if (this.#octets + this.#removed.size + this.#added.size > OCTETS_FOR_ONE * this.#limit)
      throw new TransferError(`the changes are larger than ${OCTETS_FOR_ONE * this.#limit} octets`);
  }

  #closeStep(): void {
    const former = this.#changes.length === 0 ? this.#current?.serial : this.#lastSerial;
    if (this.#soa === undefined || former === undefined) return;
    if (isAsNew(former, this.#stepSerial))
      throw new TransferError(`a step from serial ${former} to ${this.#stepSerial}, which is not newer`);
    this.#lastSerial = this.#stepSerial;
    this.#octets += this.#removed.size + this.#added.size;
    this.#changes.push({ from: former, soa: this.#soa, removed: this.#removed, added: this.#added });
    this.#removed = new RecordLog();
    this.#added = new RecordLog();
  }
}

/** Of the state after a change. */
function serialOf({ soa: { rdata } }: ZoneChange): number {
  return readU32(rdata, rdata.length - 20);
}

function plainOf(record: ResourceRecord): PlainRecord {
  const { name, type } = record;
  const ttl = record.ttl > MAX_TTL ? 0 : record.ttl;
  return { owner: name.toLowerCase().wire, type, ttl, rdata: plainData(record) };
}

/** RFC 2181 section 8: a larger TTL counts as 0. */
const MAX_TTL = 0x7fff_ffff;
