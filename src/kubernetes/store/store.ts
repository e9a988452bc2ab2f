/**
 * The cluster as DNS sees it. Sources (the API's watches, a folder of manifests) put objects in; plugins look names
 * and addresses up, each in a constant number of map look-ups. It keeps no Kubernetes objects, only what answers need.
 *
 * Everything is synchronous: between two statements of a handler nothing changes.
 */

import { ColumnMemory, type SharedColumns } from "../../lib/collections/slab/column-memory.ts";
import type { Clock } from "../../lib/time/clock.ts";
import {
  type EndpointSet,
  type Identity,
  KINDS,
  type Kind,
  type ObjectOfKind,
  type Service,
  type WatchedKind,
  type WatchedObjects,
} from "../objects/objects.ts";
import { PodIndex } from "./pods/pod-index.ts";
import { ServiceIndex } from "./services/service-index.ts";
import type { LargeObject } from "./tables/large-objects.ts";
import { StateReader } from "./tables/state-reader.ts";
import { ChangeRecorder, type StoreChange } from "./tables/store-change.ts";
import type { TableListing } from "./tables/table-listing.ts";

export interface ClusterStoreOptions {
  readonly clock: Clock;
  /** The kinds that some source will fill. The store is synced when each of them has been listed once. */
  readonly kinds: readonly Kind[];
  /** A copy of another store, which says what its serials are ({@link ClusterStore.adoptSerials}). Default false. */
  readonly replica?: boolean;
  /** By which copies tell this store from others. Default 0. */
  readonly identity?: number;
}

/** What another thread needs to {@link ClusterStore.join}. */
export interface SharedStore {
  readonly columns: SharedColumns;
  readonly services: readonly LargeObject<Service>[];
  readonly endpoints: readonly LargeObject<EndpointSet>[];
}

/** A large object on its way to the threads that share a store. */
export type SharedLarge =
  | { readonly table: "services"; readonly large: LargeObject<Service> }
  | { readonly table: "endpoints"; readonly large: LargeObject<EndpointSet> };

/** Hears of everything that is done to a store, after it was done; a put that says nothing new is left out. */
export interface StoreObserver {
  /** Threads that share it have to join anew. */
  moved?(): void;
  /** What does not lie in the memory that is shared. */
  large?(large: SharedLarge): void;
  put<K extends Kind>(kind: K, object: ObjectOfKind[K]): void;
  delete(kind: Kind, identity: Identity): void;
  /** All there is of a kind has been put. */
  listed(kind: Kind): void;
  /** The source of a kind was heard of, though nothing changed. */
  confirmed(kind: Kind): void;
}

export type StoreListener = (change: StoreChange) => void;

/** A complete listing on its way in. Objects are applied as they come; what it never named is deleted at the end. */
export interface Relist<T> {
  put(object: T): void;
  /** Deletes what was not put, and marks the kind as synced. A listing that broke off is dropped without commit. */
  commit(): void;
  /**
   * The same for a listing of any length: the event loop has its turn now and then. What is put meanwhile stays. With little to delete it
   * is done when this returns.
   */
  commitInTurns(): Promise<void>;
}

/** What a watch fills. */
export interface WatchedStore<K extends WatchedKind> {
  put(kind: K, object: WatchedObjects[K]): void;
  delete(kind: K, identity: Identity): void;
  relist(kind: K): Relist<WatchedObjects[K]>;
  /** All there is of the kind has been put. */
  markListed(kind: K): void;
  /** What is known is true as of now. */
  confirm(kind: K): void;
}

/** One kind's place in the indexes. */
interface ObjectTable<T> {
  /** @returns whether the object says something new */
  put(object: T, change: ChangeRecorder): boolean;
  delete(identity: Identity, change: ChangeRecorder): void;
  /** May be read while objects come and go. */
  all(): Iterable<T>;
  listing(): TableListing;
}

export class ClusterStore {
  /** Services, endpoints and namespaces of this cluster. For look-ups only. */
  readonly services: ServiceIndex;
  /** For look-ups only. */
  readonly pods: PodIndex;
  /** What is to be filled. */
  readonly kinds: ReadonlySet<Kind>;
  readonly #memory = new ColumnMemory();
  readonly #reader: StateReader;
  readonly #clock: Clock;
  readonly #tables: { readonly [K in Kind]: ObjectTable<ObjectOfKind[K]> };
  readonly #change = new ChangeRecorder();
  readonly #listeners = new Set<StoreListener>();
  readonly #observers = new Set<StoreObserver>();
  readonly #replica: boolean;
  readonly #lastEvents = new Map<Kind, number>();
  /** Listings that are being completed: whatever is put meanwhile belongs to what they have named. */
  readonly #completing = new Set<{ readonly kind: Kind; readonly listing: TableListing }>();
  readonly #syncedKinds = new Set<Kind>();
  readonly #synced = Promise.withResolvers<void>();
  /** By which copies tell this store from others. */
  readonly identity: number;
  #serial = 0;
  #externalSerial = 0;
  #transferred = 0;
  #sequence = 0;

  constructor({ clock, kinds, replica = false, identity = 0 }: ClusterStoreOptions) {
    const services = new ServiceIndex(this.#memory);
    this.#reader = new StateReader(this.#memory, () => services.forget());
    const pods = new PodIndex(this.#memory);
    this.#clock = clock;
    this.#replica = replica;
    this.identity = identity;
    this.kinds = new Set(kinds);
    this.services = services;
    this.pods = pods;
    this.#tables = {
      namespaces: {
        put: (namespace, change) => services.putNamespace(namespace, change),
        delete: ({ name }, change) => services.deleteNamespace(name, change),
        all: () => services.existingNamespaces(),
        listing: () => services.listNamespaces(),
      },
      services: {
        put: (service, change) => services.putService(service, change),
        delete: (identity, change) => services.deleteService(identity, change),
        all: () => services.services(),
        listing: () => services.listServices(),
      },
      endpoints: {
        put: (set, change) => services.putEndpoints(set, change),
        delete: (identity, change) => void services.deleteEndpoints(identity, change),
        all: () => services.endpointSets(),
        listing: () => services.listEndpoints(),
      },
      pods: {
        put: (pod, change) => pods.put(pod, change),
        delete: (identity, change) => void pods.delete(identity, change),
        all: () => pods.pods(),
        listing: () => pods.listing(),
      },
    };
  }

  /**
   * Whether another thread writes the objects. Then they are to be read by {@link read} alone, and cannot be put or deleted here.
   */
  get isShared(): boolean {
    return this.#memory.isReader;
  }

  /**
   * What `look` finds in one state. Where no other thread writes, that is a call like any other. It may be called several times: it must do
   * nothing, and return nothing that still looks into the store.
   * @throws StoreBusyError where another thread writes for so long that the event loop should have a turn
   */
  read<T>(look: () => T): T {
    return this.#memory.isReader ? this.#reader.read(look) : look();
  }

  /** The same for callers that cannot wait for another turn: `undefined` where another thread writes for too long. */
  tryRead<T>(look: () => T): T | undefined {
    return this.#memory.isReader ? this.#reader.tryRead(look) : look();
  }

  /**
   * Lets stores in other threads {@link join}: from now on all objects lie in memory that all of them read. A thread that joins needs to hear of
   * changes, of memory that has moved, and of large objects ({@link StoreObserver}).
   *
   * Why no answer that is remembered stays untrue: an answer is read, found whole and remembered in one turn of the event loop. A change is
   * written before it is told. So what was remembered before the change was written is forgotten when it is told, and what is read after that
   * has been read in the changed state. The other threads must be told the change after it is written, which is what observers are.
   */
  share(): SharedStore {
    const { services, endpoints } = this.services.large;
    services.told ??= (large) => this.#tellLarge({ table: "services", large });
    endpoints.told ??= (large) => this.#tellLarge({ table: "endpoints", large });
    // What is kept looks into memory that is left behind.
    if (!this.#memory.isShared) this.services.forget();
    const columns = this.#memory.share(() => {
      for (const observer of this.#observers) observer.moved?.();
    });
    return { columns, services: services.all, endpoints: endpoints.all };
  }

  /** Does most of {@link share} in portions, for a store with much in it. */
  prepareToShare(): Generator<undefined> {
    return this.#memory.prepareToShare();
  }

  /** Reads the objects of a store in another thread, in place of those that were here. */
  join({ columns, services, endpoints }: SharedStore): void {
    const { large } = this.services;
    this.#memory.join(columns);
    this.services.forget();
    large.services.clear();
    large.endpoints.clear();
    for (const each of services) large.services.receive(each);
    for (const each of endpoints) large.endpoints.receive(each);
  }

  /** A large object of the store that was joined. */
  receiveLarge(object: SharedLarge): void {
    const { services, endpoints } = this.services.large;
    if (object.table === "services") services.receive(object.large);
    else endpoints.receive(object.large);
    this.services.forget();
  }

  /** The source of a kind was heard of elsewhere. @param age milliseconds since then */
  heard(kind: Kind, age = 0): void {
    this.#lastEvents.set(kind, this.#clock.now() - age);
  }

  /** Tells those who subscribed what changed in the store that was joined. */
  announce(change: StoreChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  /** Adds an object or replaces its former state. */
  put<K extends Kind>(kind: K, object: ObjectOfKind[K]): void {
    this.#put(kind, object);
  }

  /** Deletes an object; one that is not there is no error. */
  delete(kind: Kind, identity: Identity): void {
    this.#tables[kind].delete(identity, this.#change);
    this.#applied(kind);
    this.#sequence++;
    for (const observer of this.#observers) observer.delete(kind, identity);
  }

  /** Starts a complete listing of a kind. It is applied as a difference, in place: there is never a second copy. */
  relist<K extends Kind>(kind: K): Relist<ObjectOfKind[K]> {
    const listing = this.#tables[kind].listing();
    return {
      put: (object) => {
        this.#put(kind, object);
        listing.note(object);
      },
      commit: () => {
        for (const _ of this.#complete(kind, listing));
      },
      commitInTurns: async () => {
        for (const _ of this.#complete(kind, listing)) await eventLoopTurn();
      },
    };
  }

  /** Ends a listing, in portions. */
  *#complete(kind: Kind, listing: TableListing): Generator<undefined> {
    const completing = { kind, listing };
    this.#completing.add(completing);
    try {
      let effort = 0;
      for (const gone of listing.rest()) {
        if (gone !== undefined) {
          this.delete(kind, gone);
          effort += EFFORT_OF_DELETION;
        }
        if (++effort < EFFORT_PER_TURN) continue;
        effort = 0;
        yield;
      }
    } finally {
      this.#completing.delete(completing);
    }
    this.confirm(kind);
    this.markListed(kind);
  }

  /** Octets of namespaces, services, endpoints and pods, and of what finds them. */
  get octets(): number {
    return this.services.octets + this.pods.octets;
  }

  /** Says that all there is of a kind has been put. */
  markListed(kind: Kind): void {
    if (!this.kinds.has(kind)) return;
    this.#syncedKinds.add(kind);
    if (this.isSynced) this.#synced.resolve();
    this.#sequence++;
    for (const observer of this.#observers) observer.listed(kind);
  }

  /** Everything there is of a kind. */
  objects<K extends Kind>(kind: K): Iterable<ObjectOfKind[K]> {
    return this.#tables[kind].all();
  }

  /** Makes the objects given all there are of a kind, as {@link relist} does. */
  replaceAll<K extends Kind>(kind: K, objects: Iterable<ObjectOfKind[K]>): void {
    const listing = this.relist(kind);
    for (const object of objects) listing.put(object);
    listing.commit();
  }

  /** Notes that the source of a kind has just been heard of, though nothing changed (a bookmark, a file looked at). */
  confirm(kind: Kind): void {
    this.#lastEvents.set(kind, this.#clock.now());
    this.#sequence++;
    for (const observer of this.#observers) observer.confirmed(kind);
  }

  /** Milliseconds since the source of a kind was last heard of; undefined before the first time. */
  age(kind: Kind): number | undefined {
    const last = this.#lastEvents.get(kind);
    return last === undefined ? undefined : this.#clock.now() - last;
  }

  /** Whether every kind has been listed once. */
  get isSynced(): boolean {
    return this.#syncedKinds.size === this.kinds.size;
  }

  isKindSynced(kind: Kind): boolean {
    return this.#syncedKinds.has(kind);
  }

  /** The kinds that are still to be listed. */
  get missingKinds(): Kind[] {
    return KINDS.filter((kind) => this.kinds.has(kind) && !this.#syncedKinds.has(kind));
  }

  /** Resolves when every kind has been listed once. */
  whenSynced(): Promise<void> {
    return this.#synced.promise;
  }

  /** Unix time of the last change to the answers of the cluster's zones, in seconds; 0 before the first. Never falls. */
  get serial(): number {
    return this.#serial;
  }

  /** Unix time of the last change to external addresses, in seconds; 0 before the first. Never falls. */
  get externalSerial(): number {
    return this.#externalSerial;
  }

  /**
   * Notes that a copy of the state with this serial was handed out: the next change gets a greater one, even within the same second.
   * Without that whoever has the copy would not learn of it. (A replica has its serials from elsewhere.)
   */
  sealSerial(serial: number): void {
    this.#transferred = Math.max(this.#transferred, serial);
  }

  /** For a replica: the serials of the store that it is a copy of. */
  adoptSerials(serial: number, externalSerial: number): void {
    this.#serial = serial;
    this.#externalSerial = externalSerial;
  }

  /** Whether its serials are those of another store: none can be kept from standing for a later state as well. */
  get isReplica(): boolean {
    return this.#replica;
  }

  /** How much observers have been told, or would have been. */
  get sequence(): number {
    return this.#sequence;
  }

  /** Tells everything that is done from now on. The returned function ends that. */
  observe(observer: StoreObserver): () => void {
    this.#observers.add(observer);
    return () => {
      this.#observers.delete(observer);
    };
  }

  /** Calls back after each change that touches answers. The returned function ends that. */
  subscribe(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    this.#change.listening = true;
    return () => {
      this.#listeners.delete(listener);
      this.#change.listening = this.#listeners.size > 0;
    };
  }

  #tellLarge(large: SharedLarge): void {
    for (const observer of this.#observers) observer.large?.(large);
  }

  #put<K extends Kind>(kind: K, object: ObjectOfKind[K]): void {
    const isNew = this.#tables[kind].put(object, this.#change);
    this.#applied(kind);
    for (const { kind: completed, listing } of this.#completing) if (completed === kind) listing.note(object);
    if (!isNew) return;
    this.#sequence++;
    for (const observer of this.#observers) observer.put(kind, object);
  }

  #applied(kind: Kind): void {
    this.#lastEvents.set(kind, this.#clock.now());
    const change = this.#change;
    if (!change.internal && !change.external) return;
    if (!this.#replica) {
      const serial = Math.max(Math.floor(this.#clock.wallTime() / 1000), this.#transferred + 1);
      if (change.internal) this.#serial = Math.max(this.#serial, serial);
      if (change.external) this.#externalSerial = Math.max(this.#externalSerial, serial);
    }
    const touched = change.take();
    if (touched === undefined) return;
    for (const listener of this.#listeners) listener(touched);
  }
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What may be looked at in one turn of the event loop, and how much more it costs to delete something: some 1 ms. */
const EFFORT_PER_TURN = 3_000;
const EFFORT_OF_DELETION = 200;
