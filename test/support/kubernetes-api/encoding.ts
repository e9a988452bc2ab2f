/** In which form objects travel. */
import { ApiError } from "./api-error.ts";
import { encodeList, encodeObject, encodeWatchFrame } from "./protobuf.ts";
import { type ApiObject, isRecord, type ResourceType } from "./resource-types.ts";
import { toTable } from "./tables.ts";

export type Format = "json" | "table" | "protobuf";

const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  json: "application/json",
  table: "application/json",
  protobuf: "application/vnd.kubernetes.protobuf",
};

/** The first form of an Accept header that a type of objects is available in. @throws ApiError without one */
export function negotiateFor(
  { isCustom = false }: ResourceType,
  accept: string | undefined,
  servesProtobuf: boolean,
): Format {
  const types = (accept ?? "").split(",").map((range) => range.split(";")[0]?.trim() ?? "");
  if (isCustom && types.every((type) => type === CONTENT_TYPES.protobuf))
    throw new ApiError(
      406,
      "NotAcceptable",
      "only the following media types are accepted: application/json, application/yaml",
    );
  return negotiate(accept, servesProtobuf && !isCustom);
}

/** The first available form of an Accept header. */
export function negotiate(accept: string | undefined, servesProtobuf: boolean): Format {
  for (const range of (accept ?? "").split(",")) {
    const [type, ...parameters] = range.split(";").map((part) => part.trim());
    if (type === CONTENT_TYPES.protobuf && servesProtobuf) return "protobuf";
    if (type === "application/json") return parameters.includes("as=Table") ? "table" : "json";
  }
  return "json";
}

export function contentType(format: Format, isWatch: boolean): string {
  return isWatch && format === "protobuf" ? `${CONTENT_TYPES.protobuf};stream=watch` : CONTENT_TYPES[format];
}

export function encodeOne(format: Format, type: ResourceType, object: ApiObject): Buffer {
  if (format === "protobuf") return encodeObject(object);
  return json(format === "table" ? toTable(type, [object], revisionOf(object)) : object);
}

export function encodeStatus(format: Format, status: Readonly<Record<string, unknown>>): Buffer {
  return format === "protobuf" ? encodeObject(status) : json(status);
}

export function encodeAll(
  format: Format,
  type: ResourceType,
  list: Readonly<Record<string, unknown>>,
  objects: readonly ApiObject[],
): Buffer {
  if (format === "protobuf") return encodeList(list, type.kind);
  if (format === "table") return json(toTable(type, objects, isRecord(list.metadata) ? list.metadata : {}));
  return json(list);
}

/** One event of a watch: a line of JSON or a frame. */
export function encodeEvent(
  format: Format,
  type: ResourceType,
  event: string,
  object: Readonly<Record<string, unknown>> | ApiObject,
): Buffer {
  if (format === "protobuf") return encodeWatchFrame(event, object);
  const isRow = format === "table" && event !== "ERROR" && event !== "BOOKMARK" && isObject(object);
  const shown = isRow ? toTable(type, [object], revisionOf(object)) : object;
  return Buffer.concat([json({ type: event, object: shown }), Buffer.from("\n")]);
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function isObject(value: Readonly<Record<string, unknown>> | ApiObject): value is ApiObject {
  return isRecord(value.metadata) && typeof value.metadata.name === "string";
}

function revisionOf({ metadata }: ApiObject): Record<string, unknown> {
  return { resourceVersion: metadata.resourceVersion ?? "" };
}
