/**
 * Exchanges queries with one server over one kind of transport. UDP and TCP are in the folders beside this file; DNS over TLS and
 * HTTPS are other implementations of {@link Exchange}.
 */
import { Flag, Rcode } from "../../dns/numbers.ts";
import { FOLD, octetAt, passingCopy, readU16 } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { PooledBuffer } from "../../lib/collections/buffer-pool.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { TimeoutHandle, type TimeoutTarget, type TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { Random } from "../../plugin/contract/site.ts";
import type { UpstreamAddress } from "../config/address.ts";
import type { ExchangeError } from "./exchange-error.ts";
import type { ExchangeMetrics } from "./upstream-metrics.ts";

export type { PooledBuffer };

export interface Exchange {
  /** The `proto` label of metrics: `udp`, `tcp`. */
  readonly protocol: string;
  /**
   * Sends a query with an id of the exchange's own. Exactly one of the request's three callbacks is called, later and never from
   * within this call. The octets may be reused when the call returns.
   *
   * @param readTimeout milliseconds for the answer once the query could be sent
   * @param connectTimeout milliseconds for a connection, if a new one is needed
   */
  send(request: UpstreamRequest, readTimeout: number, connectTimeout: number): void;
  /** Closes all sockets; pending requests fail. */
  close(): void;
}

export interface ExchangeOptions {
  readonly remote: UpstreamAddress;
  readonly sourceAddress?: string | undefined;
  readonly clock: Clock;
  /** Shared by all exchanges of a plugin: one timer for all queries in flight. */
  readonly wheel: TimeoutWheel;
  readonly random: Pick<Random, "unpredictable">;
  readonly metrics: ExchangeMetrics;
  /** Milliseconds without use after which a socket or connection closes. */
  readonly expire: number;
  /** Milliseconds after which it gets no further queries; 0 for no limit. */
  readonly maxAge: number;
}

/** Whether it asks for a whole zone, or for its changes. */
export function isTransfer(request: UpstreamRequest): boolean {
  const type = readU16(request.bytes, request.questionEnd - 4);
  return type === RecordType.AXFR || type === RecordType.IXFR;
}

/** The socket or connection that carries a request until its answer. */
export interface RequestCarrier {
  timedOut(request: UpstreamRequest): void;
  /** Abandons the request: none of its callbacks is called. */
  letGo(request: UpstreamRequest): void;
}

/**
 * A query and the receiver of its answer in one object, so that a query in flight needs no closure, no promise and no timer handle.
 * It is in one exchange at a time; a callback may pass it to the next.
 */
export abstract class UpstreamRequest extends TimeoutHandle implements TimeoutTarget {
  /** The query: the first `length` octets, without the id. Read at each send. */
  abstract get bytes(): Uint8Array;
  abstract get length(): number;
  /** End of the question section, which begins at octet 12. */
  abstract get questionEnd(): number;

  /**
   * Header and question have been checked, the records have not.
   * @param lent the owner of the octets, to return them to after use; the octets are the request's own if it is missing
   */
  abstract answered(reply: Uint8Array, lent?: PooledBuffer): void;
  abstract failed(error: ExchangeError): void;

  /** Like {@link answered}, for octets at the start of a buffer that is reused as soon as this returns. */
  answeredInPassing(buffer: Uint8Array, length: number): void {
    this.answered(passingCopy(buffer, 0, length));
  }

  /**
   * A message with the request's id was dropped because it answers another question. The request keeps waiting. The octets are
   * lent.
   */
  mismatched(_message: Uint8Array, _length: number): void {
    // The exchange has counted it; most requests need no more.
  }

  /** Whether a reply must repeat the spelling of the question: for names in random case, which a spoofer has to guess. */
  get exactCase(): boolean {
    return false;
  }

  /** Whether it only checks the health of the upstream: metrics of connections ignore it. */
  get isProbe(): boolean {
    return false;
  }

  /** How a message with the request's id matches the request. */
  fit(message: Uint8Array, length: number): Fit {
    return fitOf(this, message, length);
  }

  // The following members belong to the exchange that carries the request.
  carrier: RequestCarrier | undefined = undefined;
  id = 0;
  /** Milliseconds, as given to {@link Exchange.send}. */
  readTimeout = 0;
  #connection: ConnectionFacts | undefined;

  get connectTimeout(): number {
    return this.#connection?.connectTimeout ?? 0;
  }

  set connectTimeout(milliseconds: number) {
    this.#connection ??= new ConnectionFacts();
    this.#connection.connectTimeout = milliseconds;
  }

  /** On the clock: a query that is resent over another connection gets no extra time. */
  get deadline(): number {
    return this.#connection?.deadline ?? 0;
  }

  set deadline(time: number) {
    this.#connection ??= new ConnectionFacts();
    this.#connection.deadline = time;
  }

  /** Number of connections that broke under the request without fault of the upstream. */
  get retries(): number {
    return this.#connection?.retries ?? 0;
  }

  set retries(times: number) {
    this.#connection ??= new ConnectionFacts();
    this.#connection.retries = times;
  }

  /** Answers that the connection had returned when the request was sent. */
  get answersBefore(): number {
    return this.#connection?.answersBefore ?? 0;
  }

  set answersBefore(answers: number) {
    this.#connection ??= new ConnectionFacts();
    this.#connection.answersBefore = answers;
  }

  /** Called by the timeout wheel. */
  expired(): void {
    this.carrier?.timedOut(this);
  }
}

/** State of a request on a connection. Datagrams, the majority, do not need it. */
class ConnectionFacts {
  connectTimeout = 0;
  deadline = 0;
  retries = 0;
  answersBefore = 0;
}

/** How a message matches a request. */
export const Fit = {
  /** It answers another question, or is not a response. */
  NONE: 0,
  /** It spells the name of the question differently. */
  OTHER_CASE: 1,
  WHOLE: 2,
} as const;
export type Fit = (typeof Fit)[keyof typeof Fit];

/**
 * Compares QR, opcode and question: type and class exactly, the name without regard to case (RFC 5452 section 9.1). A bare header
 * with an error is accepted: the server could not parse the question, so it cannot repeat it.
 */
function fitOf(request: UpstreamRequest, message: Uint8Array, length: number): Fit {
  const { bytes, questionEnd } = request;
  const flags = readU16(message, 2);
  if ((flags & Flag.QR) === 0 || ((flags ^ readU16(bytes, 2)) & OPCODE) !== 0) return Fit.NONE;
  if (isBareError(message, length)) return Fit.WHOLE;
  if (length < questionEnd || readU16(message, 4) !== 1) return Fit.NONE;
  const nameEnd = questionEnd - 4;
  for (let at = nameEnd; at < questionEnd; at++) if (bytes[at] !== message[at]) return Fit.NONE;
  let fit: Fit = Fit.WHOLE;
  for (let at = 12; at < nameEnd; at++) {
    const asked = octetAt(bytes, at);
    const answered = octetAt(message, at);
    if (asked === answered) continue;
    if (FOLD[asked] !== FOLD[answered]) return Fit.NONE;
    fit = Fit.OTHER_CASE;
  }
  return fit;
}

const OPCODE = 0x7800;

/** A header alone with an rcode other than NOERROR and NXDOMAIN, which need a name. */
export function isBareError(message: Uint8Array, length: number): boolean {
  if (length !== SHORTEST_MESSAGE || readU16(message, 4) !== 0) return false;
  const rcode = octetAt(message, 3) & 0xf;
  return rcode !== Rcode.NOERROR && rcode !== Rcode.NXDOMAIN;
}

/** Whether a message answers the request with its id. Counts a mismatch and reports it to the request. */
export function isReply(
  request: UpstreamRequest,
  message: Uint8Array,
  length: number,
  metrics: ExchangeMetrics,
): boolean {
  const fit = request.fit(message, length);
  if (fit === Fit.WHOLE) return true;
  if (fit === Fit.OTHER_CASE) {
    metrics.otherCase.increment();
    if (!request.exactCase) return true;
  } else {
    metrics.otherQuestion.increment();
  }
  request.mismatched(message, length);
  return false;
}

/** A message has at least a header. */
export const SHORTEST_MESSAGE = 12;
