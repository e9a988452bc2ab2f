/**
 * Asking one server over one kind of transport. UDP and TCP stand beside this file; DNS over TLS or HTTPS is another
 * implementation of {@link Exchange}.
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
   * Sends a query with an id of the exchange's own. Exactly one of the request's three callbacks is called, later and
   * never from within this call. The octets are not needed any more when the call returns.
   *
   * @param readTimeout milliseconds that the answer may take once the query could be sent
   * @param connectTimeout milliseconds that a connection may take, if there has to be a new one
   */
  send(request: UpstreamRequest, readTimeout: number, connectTimeout: number): void;
  /** Closes all sockets; what waits fails. */
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
  /** Milliseconds after which it is used for no further query; 0 for no limit. */
  readonly maxAge: number;
}

/** Whether it asks for all of a zone, or its changes. */
export function isTransfer(request: UpstreamRequest): boolean {
  const type = readU16(request.bytes, request.questionEnd - 4);
  return type === RecordType.AXFR || type === RecordType.IXFR;
}

/** What holds a request while the answer is awaited: a socket, a connection. */
export interface RequestCarrier {
  timedOut(request: UpstreamRequest): void;
  /** Nobody waits for the request any more: none of its callbacks is called. */
  letGo(request: UpstreamRequest): void;
}

/**
 * A query and who waits for its answer, in one object, so that one more query in flight costs no closure and no
 * promise, nor a handle for its time-out. It is in one exchange at a time; a callback may give it to the next.
 */
export abstract class UpstreamRequest extends TimeoutHandle implements TimeoutTarget {
  /** The query; only the first `length` octets count, and of those not the id. Asked for whenever it is sent. */
  abstract get bytes(): Uint8Array;
  abstract get length(): number;
  /** End of the question section, which begins at octet 12. */
  abstract get questionEnd(): number;

  /**
   * Header and question are checked, the records are not.
   * @param lent whose octets they are: who has no use for them any more gives it back, and who keeps them does not. They are the request's own
   *   where it is missing
   */
  abstract answered(reply: Uint8Array, lent?: PooledBuffer): void;
  abstract failed(error: ExchangeError): void;

  /** As {@link answered}, with the first octets of a buffer that is used again as soon as this returns. */
  answeredInPassing(buffer: Uint8Array, length: number): void {
    this.answered(passingCopy(buffer, 0, length));
  }

  /**
   * A message with the request's id was thrown away as it answers something else. The request waits on. The octets are lent.
   */
  mismatched(_message: Uint8Array, _length: number): void {
    // The exchange has counted it, which does for most.
  }

  /** Whether a reply must spell the question as the query did: for names in random case, which a forger has to guess. */
  get exactCase(): boolean {
    return false;
  }

  /** Whether it asks for the health of the upstream alone: metrics of connections leave it out. */
  get isProbe(): boolean {
    return false;
  }

  /** How a message with the request's id answers it. */
  fit(message: Uint8Array, length: number): Fit {
    return fitOf(this, message, length);
  }

  // What follows belongs to the exchange that has the request in its hands.
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

  /** By the clock: a query that is sent anew over another connection has no more time than before. */
  get deadline(): number {
    return this.#connection?.deadline ?? 0;
  }

  set deadline(time: number) {
    this.#connection ??= new ConnectionFacts();
    this.#connection.deadline = time;
  }

  /** How often a connection broke under the request without fault of the upstream. */
  get retries(): number {
    return this.#connection?.retries ?? 0;
  }

  set retries(times: number) {
    this.#connection ??= new ConnectionFacts();
    this.#connection.retries = times;
  }

  /** Answers that the connection had given when the request was sent. */
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

/** What a request has to do with connections: those that go by datagram, of which most wait, have none. */
class ConnectionFacts {
  connectTimeout = 0;
  deadline = 0;
  retries = 0;
  answersBefore = 0;
}

/** How a message answers a request. */
export const Fit = {
  /** It answers something else, or is no response. */
  NONE: 0,
  /** It spells the name of the question in its own way. */
  OTHER_CASE: 1,
  WHOLE: 2,
} as const;
export type Fit = (typeof Fit)[keyof typeof Fit];

/**
 * QR, opcode and question are compared: type and class alike, the name without regard to case (RFC 5452 section 9.1).
 * A bare header with an error says that the server could not read the question, and so has none to repeat.
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

/** A header alone with an rcode other than NOERROR and NXDOMAIN, which are about a name. */
export function isBareError(message: Uint8Array, length: number): boolean {
  if (length !== SHORTEST_MESSAGE || readU16(message, 4) !== 0) return false;
  const rcode = octetAt(message, 3) & 0xf;
  return rcode !== Rcode.NOERROR && rcode !== Rcode.NXDOMAIN;
}

/**
 * Whether a message is for the request that has its id. What is not is counted, and the request told.
 */
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

/** Fewer octets than a header are no message. */
export const SHORTEST_MESSAGE = 12;
