/** What is asked of the API about one resource, and what comes back: pages of lists, events of watches. */
import type { Clock } from "../../../lib/time/clock.ts";
import type { WatchedKind } from "../../objects/objects.ts";
import { ApiContentError, type RequestSubject } from "../access/api-error.ts";
import type { ApiClient, ApiResponse } from "../client/api-client.ts";
import {
  acceptHeader,
  decodeEvent,
  decodePage,
  formatOf,
  type ObjectFormat,
  type ObjectPage,
  type WatchEvent,
} from "../client/codec.ts";
import { BodyReader, FrameSplitter } from "../client/frames.ts";
import type { ListWatchTimings } from "../client/list-watch-timings.ts";
import { pathOf, type Resource } from "../client/resource.ts";
import { EventFrame } from "../protobuf/read-event.ts";
import { TextPool } from "../protobuf/text-pool.ts";
import { SilenceGuard } from "./silence-guard.ts";

export interface ResourceRequestsOptions {
  readonly client: Pick<ApiClient, "get">;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** What the server is to select; empty for everything. */
  readonly labelSelector: string;
  readonly timings: ListWatchTimings;
  /** Ends whatever is under way. */
  readonly stop: AbortSignal;
}

/** Which part of a list, and of when. */
export interface PageRequest {
  /** A state of this revision or of a later one; "0" for any that the server has at hand, empty for the latest. */
  readonly revision: string;
  /** Whether everything is to come in one page. */
  readonly isWhole: boolean;
  /** Empty for the first page. */
  readonly continueToken: string;
}

/** The server is to end a watch after five to ten minutes, so that watches spread over its replicas. */
const MIN_WATCH_SECONDS = 300;

export class ResourceRequests<K extends WatchedKind> {
  readonly #options: ResourceRequestsOptions;
  /** Equal texts of all that is read are one. */
  readonly #texts = new TextPool();
  readonly #pages = new BodyReader();
  #resource: Resource<K>;

  constructor(resource: Resource<K>, options: ResourceRequestsOptions) {
    this.#resource = resource;
    this.#options = options;
  }

  /** What is asked for at present. */
  get resource(): Resource<K> {
    return this.#resource;
  }

  set resource(resource: Resource<K>) {
    this.#resource = resource;
  }

  about(verb: RequestSubject["verb"]): RequestSubject {
    const { plural, group, remedy } = this.#resource;
    return { verb, resource: plural, group, remedy };
  }

  /** @returns a page whose objects are to be read before the next one is asked for */
  async readPage({ revision, isWhole, continueToken }: PageRequest): Promise<ObjectPage> {
    const { client, clock, timings, stop } = this.#options;
    const parameters = this.#parameters();
    if (!isWhole) parameters.set("limit", String(this.#resource.pageSize));
    const isFirst = continueToken === "";
    if (isFirst) setListRevision(parameters, revision);
    else parameters.set("continue", continueToken);
    const guard = new SilenceGuard(clock, timings.listSilenceMs, stop);
    try {
      const { contentType, body } = await client.get(
        this.#path(parameters),
        acceptHeader(this.#resource),
        guard.signal,
        !isFirst,
      );
      guard.heard();
      const format = formatOf(contentType);
      const octets = await this.#pages.read(heardBy(guard, body));
      return decodePage(octets, format, this.#resource, this.#texts);
    } finally {
      guard.stop();
    }
  }

  /** All pages have been read: the memory that they came in is not needed for now. */
  endPages(): void {
    this.#pages.release();
  }

  /** A watch from a revision on. The caller closes it. */
  watch(revision: string): Promise<WatchStream<K>> {
    const parameters = this.#watchParameters();
    parameters.set("resourceVersion", revision);
    return this.#open(parameters, this.#options.timings.watchSilenceMs);
  }

  /**
   * A watch that begins with everything there is, each object on its own, and goes on from there. The caller closes it.
   * @param revision as for {@link readPage}; any state at hand is no choice here
   */
  watchWithList(revision: string): Promise<WatchStream<K>> {
    const parameters = this.#watchParameters();
    parameters.set("sendInitialEvents", "true");
    parameters.set("resourceVersionMatch", "NotOlderThan");
    if (revision !== "0" && revision !== "") parameters.set("resourceVersion", revision);
    return this.#open(parameters, this.#options.timings.listSilenceMs);
  }

  async #open(parameters: URLSearchParams, patienceMs: number): Promise<WatchStream<K>> {
    const { client, clock, stop } = this.#options;
    const guard = new SilenceGuard(clock, patienceMs, stop);
    const resource = this.#resource;
    try {
      const response = await client.get(this.#path(parameters), acceptHeader(resource), guard.signal);
      guard.heard();
      return new WatchStream({ response, guard, resource, texts: this.#texts });
    } catch (error) {
      guard.stop();
      throw error;
    }
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
}

/** Events as they come. */
export class WatchStream<K extends WatchedKind> {
  /** Octets of the body, to be handed to {@link split} one after the other. */
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly #guard: SilenceGuard;
  readonly #splitter: FrameSplitter;
  readonly #format: ObjectFormat;
  readonly #resource: Resource<K>;
  readonly #event: EventFrame;
  readonly #connectionHeardAt: () => number | undefined;

  /** @throws ApiContentError where the answer is in no form that was asked for */
  constructor(options: {
    response: ApiResponse;
    guard: SilenceGuard;
    resource: Resource<K>;
    texts: TextPool;
  }) {
    const { response, guard, resource, texts } = options;
    this.#format = formatOf(response.contentType);
    this.chunks = response.body;
    this.#guard = guard;
    this.#splitter = new FrameSplitter(this.#format);
    this.#resource = resource;
    this.#event = new EventFrame(texts);
    this.#connectionHeardAt = response.connectionHeardAt;
  }

  /** The events that are complete with this chunk, as octets for {@link read} that are valid until the next chunk. @throws ApiContentError */
  split(chunk: Uint8Array): readonly Uint8Array[] {
    this.#guard.heard();
    return this.#splitter.push(chunk);
  }

  /** @throws ApiContentError */
  read(frame: Uint8Array): WatchEvent<K> {
    return decodeEvent(frame, this.#format, this.#resource, this.#event);
  }

  /** From now on nothing may come for so long: answers to pings on its connection are enough. */
  waitForEvents(patienceMs: number): void {
    this.#guard.wait(patienceMs, this.#connectionHeardAt);
  }

  /** As {@link waitForEvents}, for a server that sends bookmarks: that the connection lives is not enough. */
  waitForBookmarks(patienceMs: number): void {
    this.#guard.wait(patienceMs);
  }

  /** @throws ApiContentError where the end came in the middle of an event */
  requireComplete(): void {
    if (this.#splitter.isIncomplete) throw new ApiContentError("the watch ended in the middle of an event");
  }

  close(): void {
    this.#guard.stop();
  }
}

function setListRevision(parameters: URLSearchParams, revision: string): void {
  if (revision === "") return;
  parameters.set("resourceVersion", revision);
  // With a limit and without this it would have to be the very revision.
  if (revision !== "0") parameters.set("resourceVersionMatch", "NotOlderThan");
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
