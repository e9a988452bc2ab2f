/**
 * Asking one server over one kind of transport. UDP and TCP stand beside this file; DNS over TLS or HTTPS is another
 * implementation of {@link Exchange}.
 */
import { Flag } from "../dns/numbers.ts";
import { FOLD, octetAt, readU16 } from "../dns/octets.ts";
import type { Clock } from "../lib/clock.ts";
import type { TimeoutHandle, TimeoutTarget, TimeoutWheel } from "../lib/timeout-wheel.ts";
import type { Random } from "../plugin/site.ts";
import type { UpstreamAddress } from "./address.ts";
import type { ExchangeError } from "./exchange-error.ts";
import type { ExchangeMetrics } from "./upstream-metrics.ts";

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

/** What holds a request while the answer is awaited: a socket, a connection. */
export interface RequestCarrier {
  timedOut(request: UpstreamRequest): void;
  /** Nobody waits for the request any more: none of its callbacks is called. */
  letGo(request: UpstreamRequest): void;
}

/**
 * A query and who waits for its answer, in one object, so that one more query in flight costs no closure and no
 * promise. It is in one exchange at a time; a callback may give it to the next.
 */
export abstract class UpstreamRequest implements TimeoutTarget {
  /** The query; only the first `length` octets count, and of those not the id. Asked for whenever it is sent. */
  abstract get bytes(): Uint8Array;
  abstract get length(): number;
  /** End of the question section, which begins at octet 12. */
  abstract get questionEnd(): number;

  /** The octets are the request's own. Header and question are checked, the records are not. */
  abstract answered(reply: Uint8Array): void;
  /** Somebody who knows socket and id answered another question, or sent no response at all. */
  abstract mismatched(reply: Uint8Array): void;
  abstract failed(error: ExchangeError): void;

  // What follows belongs to the exchange that has the request in its hands.
  carrier: RequestCarrier | undefined = undefined;
  id = 0;
  timeout: TimeoutHandle | undefined = undefined;
  /** Milliseconds, as given to {@link Exchange.send}. */
  readTimeout = 0;
  connectTimeout = 0;
  /** How often a connection broke under the request without fault of the upstream. */
  retries = 0;
  /** Answers that the connection had given when the request was sent. */
  answersBefore = 0;

  /** Called by the timeout wheel. */
  expired(): void {
    this.carrier?.timedOut(this);
  }

  /** Tells the request about a message that came back with its id. */
  deliver(reply: Uint8Array): void {
    if (isReplyTo(this, reply)) this.answered(reply);
    else this.mismatched(reply);
  }
}

/** QR is set and the question is the request's own: type and class alike, the name in any spelling (RFC 5452 section 9.1). */
export function isReplyTo(request: UpstreamRequest, reply: Uint8Array): boolean {
  const { bytes, questionEnd } = request;
  if (reply.length < questionEnd || (readU16(reply, 2) & Flag.QR) === 0 || readU16(reply, 4) !== 1)
    return false;
  const nameEnd = questionEnd - 4;
  for (let at = nameEnd; at < questionEnd; at++) if (bytes[at] !== reply[at]) return false;
  for (let at = 12; at < nameEnd; at++) {
    const asked = octetAt(bytes, at);
    const answered = octetAt(reply, at);
    if (asked !== answered && FOLD[asked] !== FOLD[answered]) return false;
  }
  return true;
}

/** Fewer octets than a header are no message. */
export const SHORTEST_MESSAGE = 12;
