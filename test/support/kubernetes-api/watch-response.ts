/** The answer to a watch: events as they happen, bookmarks in between, until one side ends it. */
import { ApiError } from "./api-error.ts";
import { contentType, encodeEvent, type Format } from "./encoding.ts";
import type { Exchange } from "./exchange.ts";
import type { Change, ObjectStorage } from "./object-storage.ts";
import { type ApiObject, apiVersionOf, type ResourceType, storageKey } from "./resource-types.ts";
import type { Selection } from "./selection.ts";

export type StreamedLists = boolean | "unheard of" | "without progress";

export interface WatchOptions {
  readonly storage: ObjectStorage;
  readonly type: ResourceType;
  readonly format: Format;
  readonly selects: Selection;
  readonly bookmarkIntervalMs: number;
  readonly streamsLists: StreamedLists;
}

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/** @throws ApiError where the watch is refused */
export function answerWatch(exchange: Exchange, options: WatchOptions): void {
  const { parameters } = exchange.facts;
  const { storage, type, selects } = options;
  const from = parameters.get("resourceVersion") ?? "";
  const isUnheardOf = options.streamsLists === "unheard of";
  const wantsInitialEvents = !isUnheardOf && parameters.get("sendInitialEvents") === "true";
  if (
    !isUnheardOf &&
    parameters.has("resourceVersionMatch") &&
    !(wantsInitialEvents && options.streamsLists)
  ) {
    const field = options.streamsLists ? "resourceVersionMatch" : "sendInitialEvents";
    const message = `ListOptions.meta.k8s.io "" is invalid: ${field}: Forbidden: ${field} is forbidden for watch`;
    throw new ApiError(422, "Invalid", message);
  }
  if (wantsInitialEvents && options.streamsLists === "without progress") {
    const message =
      "etcd does not support requesting progress of watches, so the end of the list is never known";
    exchange.head(200, { "content-type": contentType(options.format, true) });
    exchange.write(
      encodeEvent(options.format, type, "ERROR", new ApiError(500, "InternalError", message).toStatus()),
    );
    exchange.end();
    return;
  }
  const events: [event: string, object: Readonly<Record<string, unknown>> | ApiObject][] = [];
  if (from === "" || from === "0" || wantsInitialEvents) {
    if (from !== "" && from !== "0") storage.requireReached(Number(from));
    const { objects } = storage.snapshot(type);
    for (const object of objects.filter(selects)) events.push(["ADDED", shown(object, type)]);
    if (wantsInitialEvents) events.push(["BOOKMARK", bookmark(options, { [INITIAL_EVENTS_END]: "true" })]);
  } else {
    try {
      for (const change of storage.changesSince(type, Number(from))) {
        const event = eventOf(change, type, selects);
        if (event !== undefined) events.push(event);
      }
    } catch (error) {
      // The watch cache of a real server says it in an event, after a good beginning.
      if (!(error instanceof ApiError) || error.code !== 410) throw error;
      exchange.head(200, { "content-type": contentType(options.format, true) });
      exchange.write(encodeEvent(options.format, type, "ERROR", error.toStatus()));
      exchange.end();
      return;
    }
  }
  exchange.head(200, { "content-type": contentType(options.format, true) });
  for (const [event, object] of events) exchange.write(encodeEvent(options.format, type, event, object));
  follow(exchange, options);
}

function follow(exchange: Exchange, options: WatchOptions): void {
  const { storage, type, format, selects, bookmarkIntervalMs } = options;
  const { parameters } = exchange.facts;
  const unsubscribe = storage.subscribe((change) => {
    if (change.resource !== storageKey(type)) return;
    const event = eventOf(change, type, selects);
    if (event !== undefined) exchange.write(encodeEvent(format, type, ...event));
  });
  const bookmarks = setInterval(() => {
    if (parameters.get("allowWatchBookmarks") !== "true") return;
    exchange.write(encodeEvent(format, type, "BOOKMARK", bookmark(options, {})));
  }, bookmarkIntervalMs);
  const seconds = Number(parameters.get("timeoutSeconds") ?? "3600");
  const timeout = setTimeout(() => exchange.end(), seconds * 1000);
  exchange.onClose(() => {
    unsubscribe();
    clearInterval(bookmarks);
    clearTimeout(timeout);
  });
}

/** The event that a change is for a watcher that sees only the selection. */
function eventOf(change: Change, type: ResourceType, selects: Selection): [string, ApiObject] | undefined {
  const { revision, before, after } = change;
  const saw = before !== undefined && selects(before);
  const sees = after !== undefined && selects(after);
  if (sees) return [saw ? "MODIFIED" : "ADDED", shown(after, type)];
  if (!saw) return undefined;
  const last = after ?? before;
  return [
    "DELETED",
    shown({ ...last, metadata: { ...last.metadata, resourceVersion: String(revision) } }, type),
  ];
}

function bookmark(
  { type, storage }: WatchOptions,
  annotations: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const metadata = { resourceVersion: String(storage.revision), annotations };
  return { kind: type.kind, apiVersion: apiVersionOf(type), metadata };
}

/** The object under the version asked for: one object may be served in several. */
function shown(object: ApiObject, type: ResourceType): ApiObject {
  return { ...object, apiVersion: apiVersionOf(type), kind: type.kind };
}
