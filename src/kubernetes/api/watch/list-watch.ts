/**
 * Keeps one kind of the store in step with the API: lists everything, then watches for changes, and begins anew as far as it has
 * to whenever something goes wrong. What is known stays until the API itself says otherwise.
 */
import type { Clock } from "../../../lib/time/clock.ts";
import { SharedTurns } from "../../../lib/time/turn-share.ts";
import { member, textMember } from "../../objects/json.ts";
import type { Identity, WatchedKind, WatchedObjects } from "../../objects/objects.ts";
import type { ReduceOptions } from "../../objects/reduce.ts";
import { TRIGGER_TIME } from "../../objects/reduce-endpoints.ts";
import type { Relist, WatchedStore } from "../../store/store.ts";
import {
  ApiContentError,
  ApiSilenceError,
  ApiStatusError,
  type RequestSubject,
} from "../access/api-error.ts";
import type { ApiClient } from "../client/api-client.ts";
import type { ObjectPage, WatchEvent } from "../client/codec.ts";
import { DEFAULT_TIMINGS, type ListWatchTimings } from "../client/list-watch-timings.ts";
import type { ResourcesOf } from "../client/resource.ts";
import { type Attempt, Recovery } from "./recovery.ts";
import { type PageRequest, ResourceRequests, type WatchStream } from "./resource-requests.ts";
import { SharedPauses } from "./shared-pauses.ts";

export interface ListWatchOptions<K extends WatchedKind> {
  readonly resources: ResourcesOf<K>;
  readonly store: WatchedStore<K>;
  readonly client: Pick<ApiClient, "get" | "abandonConnections">;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly reduce: ReduceOptions;
  /** What the server is to select; empty for everything. */
  readonly labelSelector: string;
  readonly observer: ListWatchObserver<K>;
  readonly timings?: Partial<ListWatchTimings>;
  /** Shared with other watches, which may have as much to do at the same time. */
  readonly turns?: SharedTurns;
  /** Shared with the other watches of the same API. */
  readonly pauses?: SharedPauses;
  /** Called when a list begins. What it returns is called when the list has ended, whatever ended it; more often does nothing. */
  readonly listing?: () => () => void;
}

/** Told what happens; nothing here may throw. */
export interface ListWatchObserver<K extends WatchedKind> {
  /** A request failed, and will be tried again in `delayMs`. */
  failed(error: unknown, subject: RequestSubject, delayMs: number): void;
  /** The server does not begin watches with a list, as with an etcd before 3.5: the list is read in pages at once. */
  readsPages(error: ApiStatusError, subject: RequestSubject): void;
  /** The kind is listed, and its watch runs. Called for each watch that begins. */
  watching(): void;
  /** An object that cannot be used. */
  unusable(identity: string, problem: string): void;
  /**
   * An object came or changed, after the first listing.
   * @param changedAt what its annotation {@link TRIGGER_TIME} says; empty where it does not say when that was
   */
  changed(object: WatchedObjects[K], changedAt: string): void;
}

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** How long to wait, at least, until a resource is asked for again that the server does not have. */
const ABSENT_RETRY_MS = 30_000;

/** Milliseconds of a turn of the event loop in which objects are applied. */
export const APPLIED_IN_TURN = 0.5;

export class ListWatch<K extends WatchedKind> {
  readonly #options: ListWatchOptions<K>;
  readonly #timings: ListWatchTimings;
  readonly #recovery: Recovery;
  readonly #requests: ResourceRequests<K>;
  readonly #turns: SharedTurns;
  readonly #pauses: SharedPauses;
  readonly #stop = new AbortController();
  /** The revision up to which everything is known; undefined before the first list and where everything has to be listed again. */
  #revision: string | undefined;
  /** Whether the last list was forgotten by the server before all of its pages were read: then all goes in one. */
  #pagesExpire = false;
  /** Whether the server says now and then that a watch is up to date. */
  #sendsBookmarks = false;
  /** The resource that was refused first, since something else went wrong or well. */
  #forbidden: { readonly error: ApiStatusError; readonly subject: RequestSubject } | undefined;
  #attempt: Pick<Attempt, "way" | "hasBegun" | "ranMs"> = { way: "list", hasBegun: false };
  #endListing: (() => void) | undefined;
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  constructor(options: ListWatchOptions<K>) {
    const { clock, random } = options;
    const timings = { ...DEFAULT_TIMINGS, ...options.timings };
    this.#options = options;
    this.#timings = timings;
    this.#recovery = new Recovery(clock, random, timings);
    this.#turns = options.turns ?? new SharedTurns(clock, APPLIED_IN_TURN);
    this.#pauses = options.pauses ?? new SharedPauses({ client: options.client, clock, random });
    this.#requests = new ResourceRequests(options.resources[0], {
      ...options,
      timings,
      stop: this.#stop.signal,
    });
  }

  get kind(): K {
    return this.#requests.resource.kind;
  }

  /** The resource that is asked for at present: `endpointslices`. */
  get plural(): string {
    return this.#requests.resource.plural;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Tries again at once, if it waits after a failure: the API is there again. */
  wake(): void {
    if (this.#wake === undefined) return;
    this.#recovery.ease();
    this.#wake();
  }

  /** Resolves when nothing is going on any more. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error("stopped"));
    this.#pauses.release(this);
    // Those of the others go on, where there are others.
    if (this.#options.pauses === undefined) this.#pauses.stop();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      try {
        await this.#advance();
      } catch (error) {
        if (this.#isStopped) return;
        await this.#recover(error);
      }
    }
  }

  get #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  /** One step: a list, or a watch from its beginning to its end. */
  async #advance(): Promise<void> {
    if (this.#revision !== undefined) {
      await this.#watch(this.#revision);
      return;
    }
    this.#endListing = this.#options.listing?.();
    try {
      if (this.#recovery.streamsLists) await this.#watchWithList();
      else await this.#list();
    } finally {
      this.#endListing?.();
    }
  }

  async #recover(error: unknown): Promise<void> {
    const { client, observer } = this.#options;
    const attempt = { ...this.#attempt, revision: this.#revision };
    const subject = this.#requests.about(attempt.way === "watch" ? "watch" : "list");
    if (error instanceof ApiSilenceError) client.abandonConnections();
    const isMissing = error instanceof ApiStatusError && error.code === 404;
    const isForbidden = error instanceof ApiStatusError && error.code === 403;
    if (isForbidden) this.#forbidden ??= { error, subject };
    // Rights that were given for an older resource are enough for that one.
    if ((isMissing || isForbidden) && attempt.revision === undefined && this.#askForNext()) return;
    // Where none may be listed, what is missing is the right to the best of them.
    const told = (isForbidden && this.#forbidden) || { error, subject };
    this.#forbidden = undefined;
    // What the server has not got is not waited for; what was there before stays known.
    const isAbsent = isMissing && attempt.revision === undefined && subject.remedy !== undefined;
    if (isAbsent) this.#options.store.markListed(this.kind);
    const recourse = this.#recovery.after(error, attempt, isAbsent ? ABSENT_RETRY_MS : undefined);
    const delayMs = this.#pauses.delayOf(this, error, recourse.delayMs);
    if (recourse.listsAnew) {
      this.#revision = undefined;
      // What has been there is gone for a moment only, if a proxy says so; for good, if the server was renewed.
      if (isMissing) this.#askForFirst();
    }
    if (recourse.readsPages && error instanceof ApiStatusError) observer.readsPages(error, subject);
    else if (!recourse.isOrdinary) observer.failed(told.error, told.subject, delayMs);
    if (delayMs > 0) await this.#sleep(delayMs, error);
  }

  /** @returns whether there is another resource to ask for */
  #askForNext(): boolean {
    const { resources } = this.#options;
    const next = resources[resources.indexOf(this.#requests.resource) + 1];
    if (next === undefined) {
      this.#askForFirst();
      return false;
    }
    this.#requests.resource = next;
    // Servers so old pass over what they do not know, and would send a list without end.
    this.#recovery.neverStream();
    return true;
  }

  #askForFirst(): void {
    const [first] = this.#options.resources;
    if (first === this.#requests.resource) return;
    this.#requests.resource = first;
    this.#recovery.streamAgain();
  }

  /** Reads all pages, which are applied as they come, and deletes what none of them named. */
  async #list(): Promise<void> {
    this.#attempt = { way: "list", hasBegun: false };
    const listing = this.#options.store.relist(this.kind);
    const revision = this.#recovery.listRevision;
    const isWhole = this.#pagesExpire;
    let continueToken = "";
    try {
      do {
        const page = await this.#readPage({ revision, isWhole, continueToken });
        await this.#applyPage(page, listing);
        ({ continueToken } = page);
        if (continueToken === "") await this.#listed(listing, page.resourceVersion);
      } while (continueToken !== "");
    } finally {
      this.#requests.endPages();
    }
  }

  async #readPage(request: PageRequest): Promise<ObjectPage> {
    try {
      return await this.#requests.readPage(request);
    } catch (error) {
      if (error instanceof ApiStatusError && error.isExpired && request.continueToken !== "")
        this.#pagesExpire = true;
      throw error;
    }
  }

  async #applyPage({ objects }: ObjectPage, listing: Relist<WatchedObjects[K]>): Promise<void> {
    for (const value of objects) {
      this.#put(value, listing);
      if (this.#turns.isOver) await this.#turns.rest();
      if (this.#isStopped) throw new Error("stopped");
    }
  }

  async #listed(listing: Relist<WatchedObjects[K]>, revision: string): Promise<void> {
    if (revision === "") throw new ApiContentError("the list has no resourceVersion");
    await listing.commitInTurns();
    this.#endListing?.();
    this.#revision = revision;
    this.#pagesExpire = false;
  }

  async #watchWithList(): Promise<void> {
    this.#attempt = { way: "streamedList", hasBegun: false };
    const listing = this.#options.store.relist(this.kind);
    const start = this.#options.clock.now();
    const stream = await this.#requests.watchWithList(this.#recovery.listRevision);
    await this.#follow(stream, start, listing);
  }

  async #watch(revision: string): Promise<void> {
    this.#attempt = { way: "watch", hasBegun: false };
    const start = this.#options.clock.now();
    await this.#follow(await this.#requests.watch(revision), start, undefined);
  }

  /** @param start when it was asked for */
  async #follow(
    stream: WatchStream<K>,
    start: number,
    list: Relist<WatchedObjects[K]> | undefined,
  ): Promise<void> {
    const { clock } = this.#options;
    const { streamedListMs, shortWatchMs } = this.#timings;
    let listing = list;
    let watchingSince = listing === undefined ? this.#watching(stream) : undefined;
    const from = this.#revision;
    this.#attempt = { ...this.#attempt, hasBegun: true };
    let events = 0;
    let changes = 0;
    try {
      for await (const chunk of stream.chunks) {
        // Most changes come alone.
        let isOver: boolean | undefined = this.#turns.begin();
        for (const frame of stream.split(chunk)) {
          const event = stream.read(frame);
          // An API that ends one watch ends all at the same time, and to end one takes a millisecond or two: each has a turn of its own.
          // Queries come first: of a long list the next chunk is there already, and one chunk may hold hundreds of changes.
          if (event.type === "ERROR" || (isOver ?? this.#turns.isOver)) await this.#turns.rest();
          isOver = undefined;
          if (this.#isStopped) throw new Error("stopped");
          events++;
          if (listing === undefined && event.type !== "BOOKMARK" && event.type !== "ERROR") changes++;
          const endOfList = this.#apply(event, listing, stream);
          if (endOfList === undefined || listing === undefined) continue;
          await this.#listed(listing, endOfList);
          listing = undefined;
          this.#attempt = { way: "watch", hasBegun: true };
          watchingSince = this.#watching(stream);
        }
        this.#turns.pause();
        if (listing === undefined) continue;
        // Where much changes it would never be silent.
        if (clock.now() - start >= streamedListMs) throw new ApiContentError(ENDLESS_LIST);
      }
      stream.requireComplete();
    } finally {
      stream.close();
      // Whatever ended it, the server was well.
      if (changes > 0) this.#recovery.ease();
      if (watchingSince !== undefined) {
        const ranMs = clock.now() - watchingSince;
        this.#attempt = { ...this.#attempt, ranMs };
        this.#recovery.ranFor(ranMs);
      }
    }
    if (listing !== undefined) throw new ApiContentError("the list ended before it was complete");
    if (clock.now() - start < shortWatchMs)
      throw new ApiContentError("the watch ended as soon as it had begun");
    if (events === 0 && from !== undefined && this.#recovery.endedSilently(from)) this.#revision = undefined;
  }

  /** A watch runs from now on. @returns since when */
  #watching(stream: WatchStream<K>): number {
    const { store, observer, clock } = this.#options;
    this.#waitForEvents(stream);
    // The server knows where to go on from: what is known is true as of now.
    store.confirm(this.kind);
    this.#pauses.release(this);
    observer.watching();
    return clock.now();
  }

  /** A server may live on and forget a watch. Where bookmarks are sent they are to come, else pings have to do. */
  #waitForEvents(stream: WatchStream<K>): void {
    const { watchSilenceMs } = this.#timings;
    if (this.#sendsBookmarks) stream.waitForBookmarks(watchSilenceMs);
    else stream.waitForEvents(watchSilenceMs);
  }

  /** @returns the revision of the list, when this event is its end */
  #apply(
    { type, object, read }: WatchEvent<K>,
    listing: Relist<WatchedObjects[K]> | undefined,
    stream: WatchStream<K>,
  ): string | undefined {
    const { store } = this.#options;
    const metadata = member(object, "metadata");
    const revision = read === undefined ? textMember(metadata, "resourceVersion") : read.revision;
    switch (type) {
      case "ADDED":
      case "MODIFIED":
        if (read === undefined) this.#put(object, listing);
        else this.#store(read.object, read.changedAt, listing);
        break;
      case "DELETED":
        store.delete(this.kind, identityOf(object));
        break;
      case "BOOKMARK":
        if (textMember(member(metadata, "annotations"), INITIAL_EVENTS_END) === "true") return revision;
        store.confirm(this.kind);
        if (!this.#sendsBookmarks) {
          this.#sendsBookmarks = true;
          this.#waitForEvents(stream);
        }
        break;
      case "ERROR":
        throw object instanceof Error
          ? object
          : new ApiContentError("an event of the watch is an error without words");
      default:
        throw new ApiContentError(`an event of the watch is of type "${type.slice(0, 40)}"`);
    }
    if (listing === undefined && revision !== "") this.#revision = revision;
    return undefined;
  }

  #put(value: unknown, listing: Relist<WatchedObjects[K]> | undefined): void {
    const { store, observer, reduce } = this.#options;
    const reduced = this.#requests.resource.reduce(value, reduce);
    if ("problem" in reduced) {
      // As if it were not there: a server that starts afresh would not know what it was before either.
      const identity = identityOf(value);
      store.delete(this.kind, identity);
      if (reduced.isForeign || reduced.isUnclaimed) return;
      observer.unusable(
        `${this.#requests.resource.objectKind} ${identity.namespace}/${identity.name}`,
        reduced.problem,
      );
      return;
    }
    const annotations = member(member(value, "metadata"), "annotations");
    this.#store(reduced.object, textMember(annotations, TRIGGER_TIME), listing);
  }

  #store(object: WatchedObjects[K], changedAt: string, listing: Relist<WatchedObjects[K]> | undefined): void {
    if (listing === undefined) {
      this.#options.store.put(this.kind, object);
      this.#options.observer.changed(object, changedAt);
    } else listing.put(object);
  }

  async #sleep(delayMs: number, error: unknown): Promise<void> {
    const { clock } = this.#options;
    const { promise, resolve } = Promise.withResolvers<void>();
    const { signal } = this.#stop;
    const end = () => resolve();
    // Nothing shortens what the server asked for.
    const askedForMs = error instanceof ApiStatusError ? Math.min(error.retryAfterMs ?? 0, delayMs) : 0;
    const earliest = clock.now() + askedForMs;
    let timer = clock.after(delayMs, end);
    this.#wake = () => {
      timer.cancel();
      timer = clock.after(Math.max(0, earliest - clock.now()), end);
    };
    signal.addEventListener("abort", end);
    const over = this.#pauses.begin(error, () => this.wake());
    await promise;
    over();
    this.#wake = undefined;
    timer.cancel();
    signal.removeEventListener("abort", end);
  }
}

function identityOf(value: unknown): Identity {
  const metadata = member(value, "metadata");
  return { namespace: textMember(metadata, "namespace"), name: textMember(metadata, "name") };
}

const ENDLESS_LIST = "a list as the beginning of a watch has no end: reading it page by page";
