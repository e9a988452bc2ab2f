/** Stands for etcd and the watch cache of a real API server: objects, revisions, and the changes between them. */
import { randomUUID } from "node:crypto";
import { ApiError, expired, notFound } from "./api-error.ts";
import { type ApiObject, apiVersionOf, type ResourceType, storageKey } from "./resource-types.ts";

export interface Change {
  readonly revision: number;
  readonly resource: string;
  /** Undefined before the object was made. */
  readonly before: ApiObject | undefined;
  /** Undefined when it was deleted. */
  readonly after: ApiObject | undefined;
}

export type ChangeListener = (change: Change) => void;

/** One moment of one resource. */
export interface Snapshot {
  readonly revision: number;
  /** Ordered by namespace and name. */
  readonly objects: readonly ApiObject[];
}

export class ObjectStorage {
  readonly #objects = new Map<string, Map<string, ApiObject>>();
  readonly #listeners = new Set<ChangeListener>();
  #changes: Change[] = [];
  #revision = 1000;
  #compacted = 1000;

  /** The revision of the latest change. */
  get revision(): number {
    return this.#revision;
  }

  /** Watches from before this revision, and lists of that time, are expired. */
  get compactedRevision(): number {
    return this.#compacted;
  }

  get(type: ResourceType, namespace: string, name: string): ApiObject {
    const found = this.#table(storageKey(type)).get(`${namespace}/${name}`);
    if (found === undefined) throw notFound(`${type.plural} "${name}"`);
    return found;
  }

  create(type: ResourceType, object: ApiObject): ApiObject {
    const table = this.#table(storageKey(type));
    if (table.has(keyOf(object)))
      throw new ApiError(409, "AlreadyExists", `${type.plural} "${object.metadata.name}" already exists`);
    const made = {
      uid: randomUUID(),
      creationTimestamp: `${new Date().toISOString().slice(0, 19)}Z`,
      ...object.metadata,
    };
    return this.#change(type, undefined, { ...object, metadata: made });
  }

  /** @throws ApiError where the object names a resourceVersion that is not its latest */
  replace(type: ResourceType, object: ApiObject): ApiObject {
    const before = this.get(type, object.metadata.namespace ?? "", object.metadata.name);
    const { uid, creationTimestamp, resourceVersion } = before.metadata;
    const expected = object.metadata.resourceVersion;
    if (expected !== undefined && expected !== "" && expected !== resourceVersion) {
      const message = `the object has been modified; apply your changes to the latest version and try again`;
      throw new ApiError(409, "Conflict", message);
    }
    const metadata = {
      ...object.metadata,
      ...(uid !== undefined && { uid }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    };
    return this.#change(type, before, { ...object, metadata });
  }

  /** Makes the object, or replaces it. */
  put(type: ResourceType, object: ApiObject): ApiObject {
    const { namespace = "", name } = object.metadata;
    const exists = this.#table(storageKey(type)).has(`${namespace}/${name}`);
    if (!exists) return this.create(type, object);
    const { resourceVersion: _, ...metadata } = object.metadata;
    return this.replace(type, { ...object, metadata });
  }

  delete(type: ResourceType, namespace: string, name: string): ApiObject {
    const before = this.get(type, namespace, name);
    const revision = ++this.#revision;
    this.#table(storageKey(type)).delete(`${namespace}/${name}`);
    this.#record({ revision, resource: storageKey(type), before, after: undefined });
    return before;
  }

  /**
   * All objects of a resource, now or as they were at a revision.
   * @throws ApiError where that is expired, or still to come
   */
  snapshot(type: ResourceType, revision = this.#revision): Snapshot {
    this.#requireKnown(revision);
    const resource = storageKey(type);
    const objects = new Map(this.#table(resource));
    for (const change of this.#changes.toReversed()) {
      if (change.revision <= revision) break;
      if (change.resource !== resource) continue;
      const { before, after } = change;
      if (before !== undefined) objects.set(keyOf(before), before);
      else if (after !== undefined) objects.delete(keyOf(after));
    }
    const ordered = [...objects]
      .sort(([left], [right]) => (left < right ? -1 : 1))
      .map(([, object]) => object);
    return { revision, objects: ordered };
  }

  /**
   * The changes of a resource after a revision.
   * @throws ApiError where some of them are forgotten
   */
  changesSince(type: ResourceType, revision: number): Change[] {
    this.#requireKnown(revision);
    const resource = storageKey(type);
    return this.#changes.filter((change) => change.resource === resource && change.revision > revision);
  }

  /** Forgets how things came to be as they are. */
  compact(): void {
    this.#changes = [];
    // A watcher that has seen every revision may go on.
    this.#compacted = this.#revision;
  }

  /** Calls back for each change of any resource until the returned function is called. */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** @throws ApiError where a revision is still to come */
  requireReached(revision: number): void {
    if (revision > this.#revision) {
      const message = `Too large resource version: ${revision}, current: ${this.#revision}`;
      throw new ApiError(504, "Timeout", message, 1);
    }
  }

  #requireKnown(revision: number): void {
    if (revision < this.#compacted)
      throw expired(`too old resource version: ${revision} (${this.#compacted})`);
    this.requireReached(revision);
  }

  #change(type: ResourceType, before: ApiObject | undefined, object: ApiObject): ApiObject {
    const revision = ++this.#revision;
    const metadata = { ...object.metadata, resourceVersion: String(revision) };
    const after = { ...object, apiVersion: apiVersionOf(type), kind: type.kind, metadata };
    this.#table(storageKey(type)).set(keyOf(after), after);
    this.#record({ revision, resource: storageKey(type), before, after });
    return after;
  }

  #record(change: Change): void {
    this.#changes.push(change);
    for (const listener of this.#listeners) listener(change);
  }

  #table(resource: string): Map<string, ApiObject> {
    const known = this.#objects.get(resource);
    if (known !== undefined) return known;
    const made = new Map<string, ApiObject>();
    this.#objects.set(resource, made);
    return made;
  }
}

function keyOf({ metadata: { namespace = "", name } }: ApiObject): string {
  return `${namespace}/${name}`;
}
