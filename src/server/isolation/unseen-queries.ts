/**
 * Queries that no client sent (`explain`), in a plugin that does not handle them itself: while it works on such a
 * query its counters stand still, and its log lines become notes of the trace. Plugin authors need not think of it.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Logger } from "../../lib/logging/log.ts";
import type { LogFields } from "../../lib/logging/log-format.ts";
import type { Next } from "../../plugin/chain/handler.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Trace } from "../../plugin/query/trace.ts";

/** One query, while the plugin has it. */
interface Followed {
  readonly trace: Trace;
  /** False after the outcome: work that the plugin continues then belongs to no query. */
  isOpen: boolean;
}

/** The trace of a query that must leave no mark. */
export function traceWithoutMark({ trace }: Query): Trace | undefined {
  return trace?.leavesNoMark === true ? trace : undefined;
}

/** Tells for one plugin whether the calling code works for a query that no client sent. */
export class UnseenQueries {
  /** Made for the first such query: most servers never have one. */
  #storage: AsyncLocalStorage<Followed | undefined> | undefined;

  /** The trace of the query that the calling code works for; `undefined` for a client's query, and outside queries. */
  get trace(): Trace | undefined {
    const followed = this.#storage?.getStore();
    return followed?.isOpen === true ? followed.trace : undefined;
  }

  /** Calls a synchronous member of the plugin. */
  during<R>(query: Query, run: () => R): R {
    const trace = traceWithoutMark(query);
    if (trace === undefined) return run();
    const followed: Followed = { trace, isOpen: true };
    try {
      return this.#open().run(followed, run);
    } finally {
      followed.isOpen = false;
    }
  }

  /** Calls the plugin's handler, with the rest of the chain wrapped to match. */
  handle(
    trace: Trace,
    run: (next: Next) => Outcome | Promise<Outcome>,
    next: Next,
  ): Outcome | Promise<Outcome> {
    const storage = this.#open();
    const followed: Followed = { trace, isOpen: true };
    const close = (): void => {
      followed.isOpen = false;
    };
    const behind: Next = (query) => {
      const outcome = storage.run(undefined, () => next(query));
      // The context of the engine's promises is that of the code that settles them, not that of the plugin that
      // waits.
      return outcome instanceof Promise ? outcome.then((settled) => settled) : outcome;
    };
    try {
      const outcome = storage.run(followed, () => run(behind));
      if (outcome instanceof Promise) outcome.then(close, close);
      else close();
      return outcome;
    } catch (error) {
      close();
      throw error;
    }
  }

  #open(): AsyncLocalStorage<Followed | undefined> {
    this.#storage ??= new AsyncLocalStorage();
    return this.#storage;
  }
}

/** A log whose lines become notes while the plugin has a query that no client sent. */
export class SilencedLog implements Logger {
  readonly #log: Logger;
  readonly #unseen: UnseenQueries;

  constructor(log: Logger, unseen: UnseenQueries) {
    this.#log = log;
    this.#unseen = unseen;
  }

  get debugEnabled(): boolean {
    return this.#log.debugEnabled;
  }

  debug(message: string): void {
    if (this.debugEnabled && !this.#isNoted(message)) this.#log.debug(message);
  }

  info(message: string): void {
    if (!this.#isNoted(message)) this.#log.info(message);
  }

  warning(message: string): void {
    if (!this.#isNoted(message)) this.#log.warning(message);
  }

  error(message: string): void {
    if (!this.#isNoted(message)) this.#log.error(message);
  }

  get takesFields(): boolean {
    return this.#log.takesFields;
  }

  infoWith(message: string, fields: LogFields): void {
    if (!this.#isNoted(message)) this.#log.infoWith(message, fields);
  }

  object(line: string): void {
    if (!this.#isNoted(line)) this.#log.object(line);
  }

  plain(line: string): void {
    if (!this.#isNoted(line)) this.#log.plain(line);
  }

  child(prefix: string): Logger {
    return new SilencedLog(this.#log.child(prefix), this.#unseen);
  }

  #isNoted(message: string): boolean {
    const { trace } = this.#unseen;
    trace?.note(`would log: ${message}`);
    return trace !== undefined;
  }
}
