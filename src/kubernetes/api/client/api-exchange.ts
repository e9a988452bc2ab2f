/**
 * One request over undici, and the answer as it comes. undici's own `request` puts a stream around each body: its events, ticks and promises would
 * cost more than all else that is done to receive a small chunk, and a watch is a chunk for each change.
 */
import type { Dispatcher } from "undici";

export interface AnswerHead {
  readonly statusCode: number;
  readonly contentType: string;
  /** Empty where there is none. */
  readonly retryAfter: string;
}

export interface ApiExchangeOptions {
  /** Ends it; what it waits for then fails with the signal's reason. */
  readonly signal: AbortSignal;
  /** What to say of a body that broke off. */
  readonly brokeOff: (error: unknown) => Error;
  /** Told of each chunk when its reader asks for the next one. */
  readonly read: (octets: number) => void;
}

/** Octets that may wait for their reader before no more are taken from the connection. */
const MOST_WAITING = 32 * 1024;

/** Of the body, which has one reader. */
type Step = IteratorResult<Uint8Array, undefined>;

export class ApiExchange
  implements Dispatcher.DispatchHandler, AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array, undefined>
{
  /** Rejects where there is no answer. */
  readonly head: Promise<AnswerHead>;
  readonly #options: ApiExchangeOptions;
  readonly #head = Promise.withResolvers<AnswerHead>();
  readonly #chunks: Uint8Array[] = [];
  #waiting = 0;
  #reader: { readonly resolve: (step: Step) => void; readonly reject: (error: Error) => void } | undefined;
  /** Octets of the chunk that the reader has. */
  #lent = 0;
  #controller: Dispatcher.DispatchController | undefined;
  #isOver = false;
  /** Why the body broke off, as long as its reader has not been told. */
  #failure: { readonly error: unknown } | undefined;

  constructor(options: ApiExchangeOptions) {
    this.#options = options;
    this.head = this.#head.promise;
    // Without a request there is no caller to await it.
    this.head.catch(() => undefined);
    const { signal } = options;
    if (signal.aborted) this.#giveUp();
    else signal.addEventListener("abort", this.#giveUp);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(notWanted());
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    // What says that the answer is yet to come.
    if (statusCode < 200) return;
    const contentType = headerText(headers["content-type"]);
    this.#head.resolve({ statusCode, contentType, retryAfter: headerText(headers["retry-after"]) });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#isOver) return;
    const reader = this.#reader;
    if (reader !== undefined) {
      this.#reader = undefined;
      this.#lent = chunk.length;
      reader.resolve({ done: false, value: chunk });
      return;
    }
    this.#chunks.push(chunk);
    this.#waiting += chunk.length;
    if (this.#waiting >= MOST_WAITING) controller.pause();
  }

  onResponseEnd(): void {
    if (!this.#end()) return;
    this.#reader?.resolve(DONE);
    this.#reader = undefined;
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(error);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Not to be called again before it has answered. */
  next(): Promise<Step> {
    if (this.#lent > 0) this.#options.read(this.#lent);
    this.#lent = 0;
    const chunk = this.#chunks.shift();
    if (chunk !== undefined) {
      this.#lent = chunk.length;
      this.#waiting -= chunk.length;
      if (this.#waiting === 0) this.#controller?.resume();
      return Promise.resolve({ done: false, value: chunk });
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) return Promise.reject(this.#told(failure.error));
    if (this.#isOver) return Promise.resolve(DONE);
    return new Promise((resolve, reject) => {
      this.#reader = { resolve, reject };
    });
  }

  /** The reader wants no more. */
  return(): Promise<Step> {
    this.#chunks.length = 0;
    this.#failure = undefined;
    if (this.#end()) this.#controller?.abort(notWanted());
    return Promise.resolve(DONE);
  }

  /** @returns whether it was not over yet */
  #end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.#options.signal.removeEventListener("abort", this.#giveUp);
    return true;
  }

  readonly #giveUp = (): void => {
    // A caller that gives up has no use for what has come.
    this.#chunks.length = 0;
    this.#fail(this.#options.signal.reason);
    this.#controller?.abort(notWanted());
  };

  #fail(error: unknown): void {
    if (!this.#end()) return;
    this.#head.reject(error);
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader === undefined) this.#failure = { error };
    else reader.reject(this.#told(error));
  }

  #told(error: unknown): Error {
    const { signal, brokeOff } = this.#options;
    return signal.aborted ? signal.reason : brokeOff(error);
  }
}

const DONE: Step = { done: true, value: undefined };

/** Each time another one: who is told keeps what belongs to the connection with it, and one for all would hold on to the last. */
function notWanted(): Error {
  return new Error("the answer is no longer wanted");
}

function headerText(header: string | string[] | undefined): string {
  return typeof header === "string" ? header : (header?.[0] ?? "");
}
