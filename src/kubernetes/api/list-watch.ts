/**
 * Keeps one kind of the store in step with the API: lists everything, then watches for changes, and begins anew as far as it has
 * to whenever something goes wrong. What is known stays until the API itself says otherwise.
 */
import type { Clock } from "../../lib/clock.ts";
import { member, textMember } from "../objects/json.ts";
import type { Identity, Kind, ObjectOfKind } from "../objects/objects.ts";
import type { ReduceOptions } from "../objects/reduce.ts";
import type { ClusterStore, Relist } from "../store/store.ts";
import type { ApiClient } from "./api-client.ts";
import { ApiContentError, ApiSilenceError, ApiStatusError, type RequestSubject } from "./api-error.ts";
import { Backoff } from "./backoff.ts";
import {
  acceptHeader,
  decodeEvent,
  decodePage,
  formatOf,
  type ObjectPage,
  type WatchEvent,
} from "./codec.ts";
import { FrameSplitter, readWhole } from "./frames.ts";
import { DEFAULT_TIMINGS, type ListWatchTimings } from "./list-watch-timings.ts";
import { TextPool } from "./protobuf/text-pool.ts";
import { pathOf, type Resource, type ResourcesOf } from "./resource.ts";
import { SilenceGuard } from "./silence-guard.ts";

export interface ListWatchOptions<K extends Kind> {
  readonly resources: ResourcesOf<K>;
  readonly store: ClusterStore;
  readonly client: Pick<ApiClient, "get" | "abandonConnections">;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly reduce: ReduceOptions;
  /** What the server is to select; empty for everything. */
  readonly labelSelector: string;
  readonly observer: ListWatchObserver<K>;
  readonly timings?: Partial<ListWatchTimings>;
}

/** Told what happens; nothing here may throw. */
export interface ListWatchObserver<K extends Kind> {
  /** A request failed, and will be tried again in `delayMs`. */
  failed(error: unknown, subject: RequestSubject, delayMs: number): void;
  /** The kind is listed, and its watch runs. Called for each watch that begins. */
  watching(): void;
  /** An object that cannot be used. */
  unusable(identity: string, problem: string): void;
  /** An object came or changed, after the first listing. */
  changed(object: ObjectOfKind[K], value: unknown): void;
}

/** The server is to end a watch after five to ten minutes, so that watches spread over its replicas. */
const MIN_WATCH_SECONDS = 300;

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** Watches refused one after the other before everything is listed again. */
const FAILURES_UNTIL_RELIST = 3;

/** How long to wait, at least, until a resource is asked for again that the server does not have. */
const ABSENT_RETRY_MS = 30_000;

/** Objects applied in one turn of the event loop. */
const OBJECTS_PER_TURN = 100;

export class ListWatch<K extends Kind> {
  readonly #options: ListWatchOptions<K>;
  readonly #timings: ListWatchTimings;
  readonly #backoff: Backoff;
  readonly #stop = new AbortController();
  readonly #texts = new TextPool();
  #resource: Resource<K>;
  /** The revision up to which everything is known; undefined before the first list and after a revision was forgotten. */
  #revision: string | undefined;
  /** Whether the server sends a list as the beginning of a watch: asked for until it refuses. */
  #streamsLists = true;
  /** How often a revision was forgotten since a watch last went well. */
  #expiries = 0;
  /** Whether the last list was forgotten by the server before all of its pages were read: then all goes in one. */
  #pagesExpire = false;
  #subject: RequestSubject;
  #running: Promise<void> | undefined;
  #wake: (() => void) | undefined;

  constructor(options: ListWatchOptions<K>) {
    this.#options = options;
    this.#timings = { ...DEFAULT_TIMINGS, ...options.timings };
    this.#backoff = new Backoff(options.random);
    this.#resource = options.resources[0];
    this.#subject = this.#about("list");
  }

  get kind(): K {
    return this.#resource.kind;
  }

  /** The resource that is asked for at present: `endpointslices`. */
  get plural(): string {
    return this.#resource.plural;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Tries again at once, if it waits after a failure: the API is there again. */
  wake(): void {
    if (this.#wake === undefined) return;
    this.#backoff.ease();
    this.#wake();
  }

  /** Resolves when nothing is going on any more. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error("stopped"));
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
    if (this.#revision !== undefined) await this.#watch(this.#revision);
    else if (this.#streamsLists) await this.#watchWithList();
    else await this.#list();
  }

  async #recover(error: unknown): Promise<void> {
    const { client, clock, observer } = this.#options;
    if (error instanceof ApiStatusError && this.#hasForgotten(error)) this.#revision = undefined;
    if (error instanceof ApiSilenceError) client.abandonConnections();
    if (this.#tryAnotherWay(error)) return;
    // That a revision is forgotten is the way of the world, and says that the server is well; that it is again and again is not.
    if (error instanceof ApiStatusError && error.isExpired && this.#expiries++ === 0) return;
    const isAbsent = this.#isAbsent(error);
    // What the server has not got is not waited for; what was there before stays known.
    if (isAbsent) this.#options.store.markListed(this.kind);
    const delay = this.#backoff.failed(
      isAbsent ? ABSENT_RETRY_MS : error instanceof ApiStatusError ? error.retryAfterMs : undefined,
    );
    observer.failed(error, this.#subject, delay);
    const isAskedFor = error instanceof ApiStatusError && error.retryAfterMs !== undefined;
    await this.#sleep(clock, delay, !isAskedFor);
  }

  /** Whether the server has no such resource, and that is nothing out of the ordinary. */
  #isAbsent(error: unknown): boolean {
    const { remedy } = this.#resource;
    return (
      remedy !== undefined &&
      this.#revision === undefined &&
      error instanceof ApiStatusError &&
      error.code === 404
    );
  }

  /** Whether the server knows nothing of the revision: it is too old, or from before etcd was restored from a backup. */
  #hasForgotten(error: ApiStatusError): boolean {
    return error.isExpired || (error.code === 504 && this.#backoff.failures >= FAILURES_UNTIL_RELIST);
  }

  /** Whether there is something else to ask for, at once. */
  #tryAnotherWay(error: unknown): boolean {
    const isRefusedStream =
      this.#revision === undefined &&
      this.#streamsLists &&
      (error instanceof ApiSilenceError ||
        (error instanceof ApiStatusError && (error.code === 400 || error.code === 422)));
    if (isRefusedStream) {
      this.#streamsLists = false;
      return true;
    }
    if (!(error instanceof ApiStatusError) || error.code !== 404) return false;
    // What has been there is gone for a moment only, if a proxy says so; for good, if the server was renewed.
    if (this.#revision !== undefined && this.#backoff.failures < FAILURES_UNTIL_RELIST) return false;
    const { resources } = this.#options;
    const wasServed = this.#revision !== undefined;
    const next = wasServed ? undefined : resources[resources.indexOf(this.#resource) + 1];
    // Servers so old pass over what they do not know, and would send a list without end.
    if (next !== undefined) this.#streamsLists = false;
    this.#resource = next ?? resources[0];
    this.#revision = undefined;
    return next !== undefined;
  }

  /** Reads all pages, which are applied as they come, and deletes what none of them named. */
  async #list(): Promise<void> {
    this.#subject = this.#about("list");
    const listing = this.#options.store.relist(this.kind);
    const parameters = this.#parameters();
    if (!this.#pagesExpire) parameters.set("limit", String(this.#resource.pageSize));
    for (;;) {
      const page = await this.#readPage(parameters);
      await this.#applyPage(page, listing);
      if (page.continueToken === "") {
        this.#listed(listing, page.resourceVersion);
        return;
      }
      parameters.set("continue", page.continueToken);
    }
  }

  async #readPage(parameters: URLSearchParams): Promise<ObjectPage> {
    try {
      return await this.#readWholePage(parameters);
    } catch (error) {
      if (error instanceof ApiStatusError && error.isExpired && parameters.has("continue"))
        this.#pagesExpire = true;
      throw error;
    }
  }

  async #readWholePage(parameters: URLSearchParams): Promise<ObjectPage> {
    const { client, clock } = this.#options;
    const guard = new SilenceGuard(clock, this.#timings.listSilenceMs, this.#stop.signal);
    try {
      const { contentType, body } = await client.get(
        this.#path(parameters),
        acceptHeader(this.#resource),
        guard.signal,
        parameters.has("continue"),
      );
      guard.heard();
      const format = formatOf(contentType);
      return decodePage(await readWhole(heardBy(guard, body)), format, this.#resource, this.#texts);
    } finally {
      guard.stop();
    }
  }

  async #applyPage({ objects }: ObjectPage, listing: Relist<K>): Promise<void> {
    let count = 0;
    for (const value of objects) {
      this.#put(value, listing);
      if (++count % OBJECTS_PER_TURN === 0) await eventLoopTurn();
      if (this.#isStopped) throw new Error("stopped");
    }
  }

  #listed(listing: Relist<K>, revision: string): void {
    if (revision === "") throw new ApiContentError("the list has no resourceVersion");
    listing.commit();
    this.#revision = revision;
    this.#pagesExpire = false;
  }

  /** A watch that begins with everything there is, each object on its own, and goes on from there. */
  async #watchWithList(): Promise<void> {
    this.#subject = this.#about("list");
    const listing = this.#options.store.relist(this.kind);
    const parameters = this.#watchParameters();
    parameters.set("sendInitialEvents", "true");
    parameters.set("resourceVersionMatch", "NotOlderThan");
    await this.#follow(parameters, listing);
  }

  async #watch(revision: string): Promise<void> {
    this.#subject = this.#about("watch");
    const parameters = this.#watchParameters();
    parameters.set("resourceVersion", revision);
    await this.#follow(parameters, undefined);
  }

  async #follow(parameters: URLSearchParams, list: Relist<K> | undefined): Promise<void> {
    const { client, clock, observer } = this.#options;
    const { listSilenceMs, streamedListMs, watchSilenceMs, shortWatchMs } = this.#timings;
    let listing = list;
    const patience = listing === undefined ? watchSilenceMs : listSilenceMs;
    const guard = new SilenceGuard(clock, patience, this.#stop.signal);
    const start = clock.now();
    let events = 0;
    try {
      const { contentType, body } = await client.get(
        this.#path(parameters),
        acceptHeader(this.#resource),
        guard.signal,
      );
      guard.heard();
      const format = formatOf(contentType);
      this.#backoff.ease();
      const splitter = new FrameSplitter(format);
      if (listing === undefined) observer.watching();
      for await (const chunk of body) {
        guard.heard();
        for (const frame of splitter.push(chunk)) {
          events++;
          const event = decodeEvent(frame, format, this.#resource, this.#texts);
          const endOfList = this.#apply(event, listing);
          if (endOfList === undefined || listing === undefined) continue;
          this.#listed(listing, endOfList);
          listing = undefined;
          guard.wait(watchSilenceMs);
          this.#subject = this.#about("watch");
          observer.watching();
        }
        if (listing === undefined) this.#succeeded();
        else if (clock.now() - start >= streamedListMs) {
          // Where much changes it would never be silent.
          this.#streamsLists = false;
          throw new ApiContentError("a list as the beginning of a watch has no end: reading it page by page");
        }
        // Of a long list the next chunk is there already: queries come first.
        else await eventLoopTurn();
      }
      if (splitter.isIncomplete) throw new ApiContentError("the watch ended in the middle of an event");
    } finally {
      guard.stop();
      // Whatever ended it, the server was well.
      if (listing === undefined && clock.now() - start >= shortWatchMs) this.#succeeded();
    }
    if (listing !== undefined) throw new ApiContentError("the list ended before it was complete");
    if (events === 0 && clock.now() - start < shortWatchMs) {
      throw new ApiContentError("the watch ended as soon as it had begun");
    }
    this.#succeeded();
  }

  #succeeded(): void {
    this.#backoff.succeeded();
    this.#expiries = 0;
  }

  /** @returns the revision of the list, when this event is its end */
  #apply({ type, object }: WatchEvent, listing: Relist<K> | undefined): string | undefined {
    const { store } = this.#options;
    const metadata = member(object, "metadata");
    const revision = textMember(metadata, "resourceVersion");
    switch (type) {
      case "ADDED":
      case "MODIFIED":
        this.#put(object, listing);
        break;
      case "DELETED":
        store.delete(this.kind, identityOf(object));
        break;
      case "BOOKMARK":
        if (textMember(member(metadata, "annotations"), INITIAL_EVENTS_END) === "true") return revision;
        store.confirm(this.kind);
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

  #put(value: unknown, listing: Relist<K> | undefined): void {
    const { store, observer, reduce } = this.#options;
    const reduced = this.#resource.reduce(value, reduce);
    if ("problem" in reduced) {
      // As if it were not there: a server that starts afresh would not know what it was before either.
      const identity = identityOf(value);
      store.delete(this.kind, identity);
      if (reduced.isForeign) return;
      observer.unusable(
        `${this.#resource.objectKind} ${identity.namespace}/${identity.name}`,
        reduced.problem,
      );
      return;
    }
    if (listing === undefined) {
      store.put(this.kind, reduced.object);
      observer.changed(reduced.object, value);
    } else listing.put(reduced.object);
  }

  #watchParameters(): URLSearchParams {
    const parameters = this.#parameters();
    parameters.set("watch", "true");
    parameters.set("allowWatchBookmarks", "true");
    const seconds = Math.floor(MIN_WATCH_SECONDS * (1 + this.#options.random()));
    parameters.set("timeoutSeconds", String(seconds));
    return parameters;
  }

  #parameters(): URLSearchParams {
    const { labelSelector } = this.#options;
    const { fieldSelector } = this.#resource;
    return new URLSearchParams({
      ...(labelSelector !== "" && { labelSelector }),
      ...(fieldSelector !== "" && { fieldSelector }),
    });
  }

  #path(parameters: URLSearchParams): string {
    return `${pathOf(this.#resource)}?${parameters}`;
  }

  #about(verb: RequestSubject["verb"]): RequestSubject {
    const { plural, group, remedy } = this.#resource;
    return { verb, resource: plural, group, remedy };
  }

  async #sleep(clock: Clock, delayMs: number, isWakeable: boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { signal } = this.#stop;
    const wake = () => resolve();
    const timer = clock.after(delayMs, wake);
    signal.addEventListener("abort", wake);
    if (isWakeable) this.#wake = wake;
    await promise;
    this.#wake = undefined;
    timer.cancel();
    signal.removeEventListener("abort", wake);
  }
}

function identityOf(value: unknown): Identity {
  const metadata = member(value, "metadata");
  return { namespace: textMember(metadata, "namespace"), name: textMember(metadata, "name") };
}

async function* heardBy(
  guard: SilenceGuard,
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of body) {
    guard.heard();
    yield chunk;
  }
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
