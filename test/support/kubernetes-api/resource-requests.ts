/** Serves requests for objects. */
import { ApiError, badRequest, expired } from "./api-error.ts";
import { contentType, encodeAll, encodeOne, encodeStatus, negotiateFor } from "./encoding.ts";
import type { Exchange } from "./exchange.ts";
import type { RequestFacts } from "./faults.ts";
import type { ObjectStorage, Snapshot } from "./object-storage.ts";
import { mergePatch, strategicMergePatch } from "./patches.ts";
import { decodeObject } from "./protobuf-reader.ts";
import { type ApiObject, isRecord, type ResourceType } from "./resource-types.ts";
import { parseSelection } from "./selection.ts";
import { toList } from "./tables.ts";
import { answerWatch, type StreamedLists } from "./watch-response.ts";

/** The parts of a path. */
export interface Target {
  readonly type: ResourceType;
  /** Empty for all namespaces. */
  readonly namespace: string;
  /** Empty for the collection. */
  readonly name: string;
}

export interface ResourceOptions {
  readonly servesProtobuf: boolean;
  readonly streamsLists: StreamedLists;
  readonly bookmarkIntervalMs: number;
}

export function parseTarget(path: string, types: readonly ResourceType[]): Target | undefined {
  const match =
    /^(?:\/api\/(?<core>v1)|\/apis\/(?<group>[^/]+)\/(?<version>[^/]+))(?:\/namespaces\/(?<namespace>[^/]+)(?=\/))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+))?(?:\/status)?$/.exec(
      path,
    );
  if (match?.groups === undefined) return undefined;
  const { core, group = "", version = core, namespace = "", plural, name = "" } = match.groups;
  const type = types.find(
    (each) => each.group === group && each.version === version && each.plural === plural,
  );
  return type === undefined ? undefined : { type, namespace, name };
}

export function verbOf(
  method: string,
  target: Target | undefined,
  parameters: URLSearchParams,
): RequestFacts["verb"] {
  if (target === undefined) return "other";
  const isWatch = parameters.get("watch") === "true" || parameters.get("watch") === "1";
  switch (method) {
    case "GET":
      if (target.name !== "") return "get";
      return isWatch ? "watch" : "list";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return "delete";
    default:
      return "other";
  }
}

export class ResourceRequests {
  readonly #storage: ObjectStorage;
  readonly #options: ResourceOptions;
  /** Lists that a client is still reading page by page, by revision and resource. */
  readonly #snapshots = new Map<string, Snapshot>();

  constructor(storage: ObjectStorage, options: ResourceOptions) {
    this.#storage = storage;
    this.#options = options;
  }

  /** @throws ApiError */
  async answer(exchange: Exchange, target: Target): Promise<void> {
    const { type, namespace, name } = target;
    const storage = this.#storage;
    switch (exchange.facts.verb) {
      case "watch":
        answerWatch(exchange, {
          ...this.#options,
          storage,
          type,
          format: negotiateFor(type, exchange.request.headers.accept, this.#options.servesProtobuf),
          selects: parseSelection(namespace, exchange.facts.parameters),
        });
        return;
      case "list":
        this.#list(exchange, target);
        return;
      case "get":
        this.#sendOne(exchange, type, storage.get(type, namespace, name));
        return;
      case "create": {
        refuseProtobuf(exchange, type);
        const object = readObject(await readBody(exchange), target);
        this.#sendOne(exchange, type, storage.create(type, object), 201);
        return;
      }
      case "update":
        this.#sendOne(exchange, type, storage.replace(type, readObject(await readBody(exchange), target)));
        return;
      case "patch": {
        const patch = await readBody(exchange);
        const before = storage.get(type, namespace, name);
        const isStrategic = exchange.request.headers["content-type"]?.includes("strategic") ?? false;
        const after = isStrategic ? strategicMergePatch(before, patch) : mergePatch(before, patch);
        this.#sendOne(exchange, type, storage.replace(type, readObject(after, target)));
        return;
      }
      case "delete": {
        await exchange.body();
        storage.delete(type, namespace, name);
        const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success" };
        exchange.head(200, { "content-type": "application/json" });
        exchange.write(encodeStatus("json", status));
        exchange.end();
        return;
      }
      default:
        throw badRequest(`no such request: ${exchange.facts.verb}`);
    }
  }

  #list(exchange: Exchange, { type, namespace }: Target): void {
    const { parameters } = exchange.facts;
    const limit = Number(parameters.get("limit") ?? "0");
    const { snapshot, start } = this.#openList(type, parameters);
    const selected = snapshot.objects.filter(parseSelection(namespace, parameters));
    const page = limit > 0 ? selected.slice(start, start + limit) : selected.slice(start);
    const metadata: Record<string, unknown> = { resourceVersion: String(snapshot.revision) };
    const end = start + page.length;
    if (end < selected.length) {
      this.#snapshots.set(`${snapshot.revision}/${type.plural}`, snapshot);
      metadata.continue = Buffer.from(`${snapshot.revision}/${end}`).toString("base64url");
      metadata.remainingItemCount = selected.length - end;
    }
    const format = negotiateFor(type, exchange.request.headers.accept, this.#options.servesProtobuf);
    exchange.head(200, { "content-type": contentType(format, false) });
    exchange.write(encodeAll(format, type, toList(type, page, metadata), page));
    exchange.end();
  }

  #openList(type: ResourceType, parameters: URLSearchParams): { snapshot: Snapshot; start: number } {
    const token = parameters.get("continue") ?? "";
    if (token !== "") {
      const match = /^(\d+)\/(\d+)$/.exec(Buffer.from(token, "base64url").toString());
      if (match === null) throw badRequest("continue key is not valid");
      const [, revision = "", start = ""] = match;
      const snapshot = this.#snapshots.get(`${revision}/${type.plural}`);
      if (snapshot === undefined || Number(revision) < this.#storage.compactedRevision) {
        throw expired("The provided continue parameter is too old to display a consistent list result.");
      }
      return { snapshot, start: Number(start) };
    }
    const asked = Number(parameters.get("resourceVersion") ?? "0");
    const isExact = parameters.get("resourceVersionMatch") === "Exact";
    if (asked > 0) this.#storage.requireReached(asked);
    const revision = isExact ? asked : undefined;
    return { snapshot: this.#storage.snapshot(type, revision), start: 0 };
  }

  #sendOne(exchange: Exchange, type: ResourceType, object: ApiObject, status = 200): void {
    const format = negotiateFor(type, exchange.request.headers.accept, this.#options.servesProtobuf);
    exchange.head(status, { "content-type": contentType(format, false) });
    exchange.write(encodeOne(format, type, object));
    exchange.end();
  }
}

/** Custom resources are taken as JSON (or YAML) alone. */
function refuseProtobuf(exchange: Exchange, { isCustom = false }: ResourceType): void {
  if (!isCustom || exchange.request.headers["content-type"] !== PROTOBUF) return;
  const message = `the body of the request was in an unknown format - accepted media types include: application/json`;
  throw new ApiError(415, "UnsupportedMediaType", message);
}

const PROTOBUF = "application/vnd.kubernetes.protobuf";

async function readBody(exchange: Exchange): Promise<unknown> {
  const octets = await exchange.body();
  if (exchange.request.headers["content-type"] === PROTOBUF) return decodeObject(octets);
  try {
    return JSON.parse(octets.toString());
  } catch (error) {
    throw badRequest(String(error));
  }
}

/** An object for a path: where the path names it, that name counts. */
export function readObject(value: unknown, { type, namespace, name }: Target): ApiObject {
  if (!isRecord(value) || !isRecord(value.metadata)) throw badRequest("not an object of Kubernetes");
  const given = { ...value.metadata, name: name || value.metadata.name };
  if (typeof given.name !== "string" || given.name === "") throw badRequest("metadata.name is missing");
  const metadata = {
    ...given,
    name: given.name,
    ...(type.isNamespaced && { namespace: namespaceOf(value, namespace) }),
  };
  if (type.plural !== "namespaces") return { ...value, metadata };
  // The API server gives it to every namespace, so that a selector can name one.
  const labels = { ...labelsOf(value.metadata.labels), "kubernetes.io/metadata.name": given.name };
  return { ...value, metadata: { ...metadata, labels } };
}

function namespaceOf({ metadata }: Readonly<Record<string, unknown>>, namespace: string): string {
  const given = isRecord(metadata) ? metadata.namespace : undefined;
  return namespace || (typeof given === "string" && given !== "" ? given : "default");
}

function labelsOf(value: unknown): Record<string, string> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([key, label]) => [key, String(label)]));
}
