/**
 * Carries data from the leader's plugins to the same plugins in the followers (`Site.feed`). A hub belongs to one
 * generation of the leader; each plugin instance has a channel in it.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Feed } from "../../plugin/contract/site.ts";

/** A message with the key of its channel. */
export type FeedMessage = readonly [key: string, message: unknown];

/** Receives the messages for one follower. */
export interface FeedSink {
  /** Takes messages in order, several at a time. */
  send(messages: readonly FeedMessage[]): void;
  /** Resolves once the follower has received everything that was sent, or cannot receive it. */
  taken(): Promise<void>;
}

/**
 * Messages sent together: between two such portions of a snapshot the event loop serves queries, here and in the
 * follower.
 */
const PORTION = 32;

/** A question without an answerer. */
export class FeedError extends Error {
  override readonly name = "FeedError";
}

export class FeedHub {
  readonly #snapshots = new Map<string, () => Iterable<unknown>>();
  readonly #answerers = new Map<string, (question: unknown) => Promise<unknown>>();
  readonly #subscriptions = new Map<object, Subscription>();
  #pending: FeedMessage[] = [];

  /** The leader's end of a channel. */
  feed(key: string): Feed {
    return {
      role: "leader",
      publish: (message) => this.#publish(key, message),
      taken: () => this.#taken(),
      provide: (snapshot) => void this.#snapshots.set(key, snapshot),
      receive: () => undefined,
      ask: () => Promise.reject(new FeedError("the leader cannot ask itself")),
      answer: (listener) => void this.#answerers.set(key, listener),
    };
  }

  /** Passes a follower's question to the channel's end here. Rejects as the answerer does. */
  async ask(key: string, question: unknown): Promise<unknown> {
    const answerer = this.#answerers.get(key);
    if (answerer === undefined) throw new FeedError("no plugin answers on this channel");
    const answer = await answerer(question);
    this.flush();
    return answer;
  }

  /**
   * Sends the snapshots of all channels to a new follower, and then everything that is published, until it is
   * detached.
   */
  async attach(follower: object, sink: FeedSink): Promise<void> {
    const subscription = new Subscription(sink);
    // Waiting messages were published earlier: the snapshot includes them.
    this.flush();
    this.#subscriptions.set(follower, subscription);
    for (const [key, snapshot] of this.#snapshots) {
      let portion: FeedMessage[] = [];
      for (const message of snapshot()) {
        if (message !== undefined) portion.push([key, message]);
        if (message !== undefined && portion.length < PORTION) continue;
        if (portion.length > 0) sink.send(portion);
        portion = [];
        await nextTurn();
        if (this.#subscriptions.get(follower) !== subscription) return;
      }
      if (portion.length > 0) sink.send(portion);
    }
    this.flush();
    subscription.open();
  }

  detach(follower: object): void {
    this.#subscriptions.delete(follower);
  }

  /** Ends publishing: the generation is over. Questions of pending queries are still answered. */
  close(): void {
    // Snapshots refer to all data of the plugins, such as a cluster, and a closed hub may stay in memory for a while.
    this.#snapshots.clear();
    this.#subscriptions.clear();
    this.#pending = [];
  }

  #publish(key: string, message: unknown): void {
    if (this.#subscriptions.size === 0) return;
    this.#pending.push([key, message]);
    if (this.#pending.length === 1) setImmediate(() => this.flush());
  }

  async #taken(): Promise<void> {
    this.flush();
    await Promise.all([...this.#subscriptions.values()].map((subscription) => subscription.taken()));
  }

  /** Sends everything published in this event-loop turn at once. */
  flush(): void {
    const messages = this.#pending;
    if (messages.length === 0) return;
    this.#pending = [];
    for (const subscription of this.#subscriptions.values()) subscription.send(messages);
  }
}

/** Holds back messages that are published while the snapshot is sent, to keep the order of events. */
class Subscription {
  readonly #sink: FeedSink;
  #held: FeedMessage[] | undefined = [];

  constructor(sink: FeedSink) {
    this.#sink = sink;
  }

  send(messages: readonly FeedMessage[]): void {
    if (this.#held === undefined) this.#sink.send(messages);
    else for (const message of messages) this.#held.push(message);
  }

  /** A follower that receives its snapshot does not serve yet, so nothing waits for it. */
  taken(): Promise<void> {
    return this.#held === undefined ? this.#sink.taken() : Promise.resolve();
  }

  open(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    if (held.length > 0) this.#sink.send(held);
  }
}

/** The followers' ends of the channels of one generation. */
export class ReceivingFeeds {
  readonly #listeners = new Map<string, (message: unknown) => Promise<void> | void>();
  /** Listeners that act on a message asynchronously. */
  readonly #acting = new Set<Promise<void>>();
  readonly #ask: (key: string, question: unknown) => Promise<unknown>;

  /** @param ask passes a question to the leader's end of a channel */
  constructor(ask: (key: string, question: unknown) => Promise<unknown>) {
    this.#ask = ask;
  }

  feed(key: string): Feed {
    return {
      role: "follower",
      publish: () => undefined,
      taken: () => Promise.resolve(),
      provide: () => undefined,
      receive: (listener) => void this.#listeners.set(key, listener),
      ask: (question) => this.#ask(key, question),
      answer: () => undefined,
    };
  }

  /** @throws the error of a listener */
  deliver(messages: readonly FeedMessage[]): void {
    for (const [key, message] of messages) {
      const acting = this.#listeners.get(key)?.(message);
      if (acting === undefined) continue;
      this.#acting.add(acting);
      void acting.finally(() => this.#acting.delete(acting));
    }
  }

  /** Resolves when all listeners have acted on the messages delivered so far. */
  async acted(): Promise<void> {
    await Promise.all(this.#acting);
  }
}
