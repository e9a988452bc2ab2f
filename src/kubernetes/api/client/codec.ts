/** Octets of the API -> lists, events and failures, out of JSON or of protobuf. */
import { messageOf } from "../../../lib/text/message-of.ts";
import { isObject, listMember, member, textMember } from "../../objects/json.ts";
import type { WatchedKind, WatchedObjects } from "../../objects/objects.ts";
import { ApiContentError, ApiStatusError } from "../access/api-error.ts";
import {
  AnyObjectSchema,
  ObjectListSchema,
  ObjectMetaSchema,
  StatusSchema,
  UnknownSchema,
} from "../protobuf/kubernetes-pb.ts";
import type { DirectlyRead } from "../protobuf/read-directly.ts";
import { EventFrame } from "../protobuf/read-event.ts";
import { MessageReader, ProtobufError, type ProtobufMessage } from "../protobuf/read-message.ts";
import { TextPool } from "../protobuf/text-pool.ts";
import type { Resource } from "./resource.ts";

export type ObjectFormat = "json" | "protobuf";

export interface ObjectPage {
  readonly resourceVersion: string;
  /** Empty on the last page. */
  readonly continueToken: string;
  /** Decoded one at a time. */
  readonly objects: Iterable<unknown>;
}

export interface WatchEvent<K extends WatchedKind = WatchedKind> {
  readonly type: string;
  /** Of an event `ERROR` a failure, of one `DELETED` perhaps no more than its name and revision. */
  readonly object: unknown;
  /** In the place of the object, where it was read at once. */
  readonly read: DirectlyRead<WatchedObjects[K]> | undefined;
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";

/** What to ask for. */
export function acceptHeader({ protobuf }: Resource<WatchedKind>): string {
  return protobuf === undefined ? "application/json" : `${PROTOBUF},application/json`;
}

/** @throws ApiContentError for a form that was not asked for, such as the page of a proxy */
export function formatOf(contentType: string): ObjectFormat {
  const [type = ""] = contentType.split(";");
  if (type.trim() === PROTOBUF) return "protobuf";
  if (type.trim() === "application/json") return "json";
  const named = contentType === "" ? "no content type" : `"${contentType.slice(0, 100)}"`;
  throw new ApiContentError(
    `the answer is ${named} and not an API server's: is a proxy or another server in between?`,
  );
}

/**
 * @param texts those of former pages and events
 * @throws ApiContentError
 */
export function decodePage(
  octets: Uint8Array,
  format: ObjectFormat,
  resource: Resource<WatchedKind>,
  texts: TextPool = new TextPool(),
): ObjectPage {
  const listKind = `${resource.objectKind}List`;
  if (format === "json") {
    const list = parseJson(octets);
    requireKind(textMember(list, "kind"), listKind);
    const metadata = member(list, "metadata");
    return {
      resourceVersion: textMember(metadata, "resourceVersion"),
      continueToken: textMember(metadata, "continue"),
      objects: listMember(list, "items"),
    };
  }
  const { kind, raw } = openEnvelope(octets, texts);
  requireKind(kind, listKind);
  const list = readProtobuf(LIST, raw, texts);
  const metadata = member(list, "metadata");
  return {
    resourceVersion: textMember(metadata, "resourceVersion"),
    continueToken: textMember(metadata, "continue"),
    objects: decodeEach(listMember(list, "items"), resource, texts),
  };
}

/**
 * @param event reads the former events of the watch, too
 * @throws ApiContentError
 */
export function decodeEvent<K extends WatchedKind>(
  frame: Uint8Array,
  format: ObjectFormat,
  resource: Resource<K>,
  event: EventFrame = new EventFrame(new TextPool()),
): WatchEvent<K> {
  if (format === "json") {
    const json = parseJson(frame);
    const type = textMember(json, "type");
    const object = member(json, "object");
    if (type === "ERROR") return { type, object: statusError(object, 0), read: undefined };
    if (type === "") throw new ApiContentError("an event of the watch has no type");
    requireKind(textMember(object, "kind"), resource.objectKind);
    return { type, object, read: undefined };
  }
  const { source } = event;
  try {
    event.open(frame);
    if (!event.isEnveloped) throw new ApiContentError(NO_ENVELOPE);
    const { type, kind, end } = event;
    if (type === "ERROR")
      return { type, object: statusError(STATUS.readFrom(source, end), 0), read: undefined };
    requireKind(kind, resource.objectKind);
    const whole = protobufOf(resource);
    if (type === "BOOKMARK") return { type, object: ANY_OBJECT.readFrom(source, end), read: undefined };
    if (type === "DELETED") return { type, object: IDENTITY.readFrom(source, end), read: undefined };
    const read = resource.direct?.read(source, end);
    return { type, object: read === undefined ? whole.readFrom(source, end) : undefined, read };
  } catch (error) {
    throw contentError(error);
  } finally {
    source.close();
  }
}

/** The failure in a body: a Status in either form, or whatever text there is. */
export function decodeFailure(
  octets: Uint8Array,
  contentType: string,
  code: number,
  retryAfter: string | undefined,
): ApiStatusError {
  const seconds = retryAfter !== undefined && /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
  try {
    const format = formatOf(contentType);
    return statusError(format === "json" ? parseJson(octets) : readStatus(octets), code, seconds);
  } catch {
    const text = Buffer.from(octets.subarray(0, 200)).toString().replace(/\s+/g, " ").trim();
    return new ApiStatusError(code, "", text, seconds === undefined ? undefined : seconds * 1000);
  }
}

function statusError(status: unknown, httpCode: number, retryAfterSeconds?: number): ApiStatusError {
  const given = member(status, "code");
  const code = httpCode !== 0 ? httpCode : typeof given === "number" ? given : 500;
  const named = member(member(status, "details"), "retryAfterSeconds");
  const seconds = retryAfterSeconds ?? (typeof named === "number" && named > 0 ? named : undefined);
  const retryAfterMs = seconds === undefined ? undefined : seconds * 1000;
  return new ApiStatusError(code, textMember(status, "reason"), textMember(status, "message"), retryAfterMs);
}

function* decodeEach(
  items: readonly unknown[],
  resource: Resource<WatchedKind>,
  texts: TextPool,
): Iterable<unknown> {
  for (const item of items)
    if (item instanceof Uint8Array) yield readProtobuf(protobufOf(resource), item, texts);
}

function protobufOf({ protobuf, objectKind }: Resource<WatchedKind>): MessageReader {
  if (protobuf === undefined)
    throw new ApiContentError(`a ${objectKind} came as protobuf, which was not asked for`);
  return protobuf;
}

function readStatus(octets: Uint8Array): unknown {
  const texts = new TextPool();
  return readProtobuf(STATUS, openEnvelope(octets, texts).raw, texts);
}

/** Every object in protobuf stands in an envelope that says what it is. */
function openEnvelope(octets: Uint8Array, texts: TextPool): { kind: string; raw: Uint8Array } {
  if (octets[0] !== 0x6b || octets[1] !== 0x38 || octets[2] !== 0x73 || octets[3] !== 0) {
    throw new ApiContentError(NO_ENVELOPE);
  }
  const envelope = readProtobuf(ENVELOPE, octets.subarray(4), texts);
  return { kind: textMember(member(envelope, "typeMeta"), "kind"), raw: octetsMember(envelope, "raw") };
}

function octetsMember(value: unknown, key: string): Uint8Array {
  const found = member(value, key);
  return found instanceof Uint8Array ? found : NO_OCTETS;
}

function requireKind(kind: string, expected: string): void {
  if (kind !== expected)
    throw new ApiContentError(`the answer is of kind "${kind.slice(0, 60)}" and not ${expected}`);
}

const NO_ENVELOPE = "the answer is not protobuf of Kubernetes: it does not begin with k8s\\0";

function readProtobuf(reader: MessageReader, octets: Uint8Array, texts: TextPool): ProtobufMessage {
  try {
    return reader.read(octets, texts);
  } catch (error) {
    throw contentError(error);
  }
}

function contentError(error: unknown): unknown {
  return error instanceof ProtobufError
    ? new ApiContentError(`the answer is not valid protobuf: ${error.message}`)
    : error;
}

function parseJson(octets: Uint8Array): unknown {
  try {
    const value: unknown = JSON.parse(
      Buffer.from(octets.buffer, octets.byteOffset, octets.byteLength).toString(),
    );
    if (isObject(value)) return value;
  } catch (error) {
    throw new ApiContentError(`the answer is not valid JSON: ${messageOf(error)}`);
  }
  throw new ApiContentError("the answer is JSON, but no object");
}

const NO_OCTETS = new Uint8Array();

const ENVELOPE = new MessageReader(UnknownSchema);
const LIST = new MessageReader(ObjectListSchema);
const ANY_OBJECT = new MessageReader(AnyObjectSchema);
/** What has gone is only told by its name. */
const IDENTITY = ANY_OBJECT.wanting({
  unwanted: [
    ObjectMetaSchema.field.labels,
    ObjectMetaSchema.field.annotations,
    ObjectMetaSchema.field.deletionTimestamp,
  ],
  keys: new Map(),
});
const STATUS = new MessageReader(StatusSchema);
