/** One query as one promise: for setup, and for background work such as the refresh of a zone. */
import { type Exchange, UpstreamRequest } from "./exchange/exchange.ts";
import type { ExchangeError } from "./exchange/exchange-error.ts";

/**
 * Sends a query and resolves with the octets of the reply, whose header and question match. The id of the query is replaced.
 *
 * @param query a whole message with one question
 * @param questionEnd where its question ends
 * @param timeout milliseconds for the answer, and for a connection if a new one is needed
 * @throws ExchangeError
 */
export function exchangeOnce(
  exchange: Exchange,
  query: Uint8Array,
  questionEnd: number,
  timeout: number,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    exchange.send(new SingleRequest(query, questionEnd, resolve, reject), timeout, timeout);
  });
}

class SingleRequest extends UpstreamRequest {
  readonly bytes: Uint8Array;
  readonly questionEnd: number;
  readonly #resolve: (reply: Uint8Array) => void;
  readonly #reject: (error: ExchangeError) => void;

  constructor(
    bytes: Uint8Array,
    questionEnd: number,
    resolve: (reply: Uint8Array) => void,
    reject: (error: ExchangeError) => void,
  ) {
    super();
    this.bytes = bytes;
    this.questionEnd = questionEnd;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get length(): number {
    return this.bytes.length;
  }

  answered(reply: Uint8Array): void {
    this.#resolve(reply);
  }

  failed(error: ExchangeError): void {
    this.#reject(error);
  }
}
