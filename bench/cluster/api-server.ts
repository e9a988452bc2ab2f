/** An API server over HTTP/2 and TLS that lists and watches {@link ApiState}, as fast as it can. */
import { once } from "node:events";
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import { EventEncoder, encodeExpired, encodeList } from "./api-messages.ts";
import { type ApiEvent, NAMESPACES, type ObjectType, PODS, SERVICES, SLICES } from "./api-objects.ts";
import type { ApiState } from "./api-state.ts";
import { monotonicMilliseconds } from "./monotonic-time.ts";

export interface ApiServerOptions {
  readonly state: ApiState;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Whether a watch may begin with a list; otherwise it comes in pages. */
  readonly streamsLists: boolean;
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const BOOKMARK_INTERVAL = 60_000;

/** Since the last time that everything was forgotten. Milliseconds of {@link monotonicMilliseconds}. */
export interface ListingTimes {
  /** When the first list was asked for. */
  readonly begun: number;
  /** When the last octet of the last list had left. */
  readonly ended: number;
  readonly octets: number;
}

export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #server: Http2SecureServer;
  readonly #events = new EventEncoder();
  readonly #watches = new Map<Http2ServerResponse, ObjectType>();
  /** Revisions below are forgotten. */
  #forgotten = 0;
  #begun: number | undefined;
  #octets = 0;
  /** Kinds that are being listed. */
  #listing = 0;
  #onListed: ((times: ListingTimes) => void) | undefined;
  readonly #bookmarks: NodeJS.Timeout;

  constructor(options: ApiServerOptions) {
    const { certificate, key } = options;
    this.#options = options;
    this.#server = createSecureServer({ cert: certificate, key, allowHTTP1: true });
    // The types know requests of HTTP/1 as well, which have the same members.
    this.#server.on("request", (request, response) => void this.#answer(request, response));
    this.#bookmarks = setInterval(() => this.#sendBookmarks(), BOOKMARK_INTERVAL);
  }

  /** @returns the port, on 127.0.0.1 */
  async listen(): Promise<number> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("no port");
    return address.port;
  }

  stop(): void {
    clearInterval(this.#bookmarks);
    this.#server.close();
  }

  /** Resolves when this many kinds are listed and watched. */
  async listed(kinds: number): Promise<ListingTimes> {
    return await new Promise((resolve) => {
      this.#onListed = (times) => {
        if (this.#watches.size < kinds || this.#listing > 0) return;
        this.#onListed = undefined;
        resolve(times);
      };
    });
  }

  /** Tells everybody who watches that the revision is forgotten: all has to be listed again. */
  forget(): void {
    this.#forgotten = this.#options.state.revision + 1;
    // Lists from now on have this revision.
    this.#options.state.replaceSomePod();
    this.#begun = undefined;
    this.#octets = 0;
    for (const response of this.#watches.keys()) response.end(this.#events.expired());
    this.#watches.clear();
  }

  /** Sends events: to each who watches those that concern it, in one write. */
  send(...events: readonly ApiEvent[]): void {
    for (const [type, ofType] of Map.groupBy(events, (event) => event.type)) {
      const frames = ofType.map(({ event, object }) => this.#events.encode(event, type, object));
      const octets = Buffer.concat(frames);
      for (const [response, watched] of this.#watches) if (watched === type) response.write(octets);
    }
  }

  async #answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    response.on("error", () => undefined);
    const { pathname, searchParams } = new URL(request.url, "https://api");
    const type = TYPES.get(pathname);
    if (type === undefined) {
      response.writeHead(404).end();
      return;
    }
    if (searchParams.get("watch") === "true") await this.#watch(type, searchParams, response);
    else await this.#list(type, searchParams, response);
  }

  async #list(type: ObjectType, parameters: URLSearchParams, response: Http2ServerResponse): Promise<void> {
    this.#begun ??= monotonicMilliseconds();
    const { state } = this.#options;
    const total = state.count(type);
    const limit = Number(parameters.get("limit") ?? total);
    const from = Number(parameters.get("continue") ?? 0);
    const end = from + limit;
    const isLast = end >= total;
    const page = encodeList(type, state.objects(type, from, end), {
      revision: state.revision,
      continueToken: isLast ? "" : String(end),
      remaining: Math.max(0, total - end),
    });
    response.writeHead(200, { "content-type": PROTOBUF });
    response.end(page);
    await once(response, "finish");
    this.#octets += page.length;
  }

  async #watch(type: ObjectType, parameters: URLSearchParams, response: Http2ServerResponse): Promise<void> {
    const withList = parameters.get("sendInitialEvents") === "true";
    const { streamsLists } = this.#options;
    if (withList && !streamsLists) {
      response.writeHead(422, { "content-type": "text/plain" }).end("sendInitialEvents is forbidden");
      return;
    }
    if (!withList && Number(parameters.get("resourceVersion")) < this.#forgotten) {
      response.writeHead(410, { "content-type": PROTOBUF }).end(encodeExpired());
      return;
    }
    response.writeHead(200, { "content-type": `${PROTOBUF};stream=watch` });
    response.on("close", () => this.#watches.delete(response));
    if (withList) await this.#streamList(type, response);
    this.#watches.set(response, type);
    this.#onListed?.({ begun: this.#begun ?? 0, ended: monotonicMilliseconds(), octets: this.#octets });
  }

  async #streamList(type: ObjectType, response: Http2ServerResponse): Promise<void> {
    this.#begun ??= monotonicMilliseconds();
    this.#listing++;
    const { state } = this.#options;
    for (const object of state.objects(type)) {
      const frame = this.#events.encode("ADDED", type, object);
      this.#octets += frame.length;
      if (!response.write(frame) && !response.destroyed) await drained(response);
    }
    response.write(this.#events.bookmark(type, state.revision, true));
    this.#listing--;
  }

  #sendBookmarks(): void {
    const { revision } = this.#options.state;
    for (const [response, type] of this.#watches)
      response.write(this.#events.bookmark(type, revision, false));
  }
}

const TYPES: ReadonlyMap<string, ObjectType> = new Map([
  ["/api/v1/namespaces", NAMESPACES],
  ["/api/v1/services", SERVICES],
  ["/api/v1/pods", PODS],
  ["/apis/discovery.k8s.io/v1/endpointslices", SLICES],
]);

function drained(response: Http2ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.on("drain", done);
    response.on("close", done);
  });
}
