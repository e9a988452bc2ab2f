/**
 * One cluster for all threads: the data plane that watches the cluster writes namespaces, services and endpoints into memory that the
 * others read (`multisocket`), and tells them what changed, so that they forget what they remember of it. Pods, which few configurations keep, are
 * sent, and so are the serials, so that every data plane names the same in SOA.
 */
import type { Feed } from "../../plugin/site.ts";
import { type Identity, KINDS, type Kind, type Pod } from "../objects/objects.ts";
import { SharedValues } from "../objects/shared-values.ts";
import { type ClusterStore, type Relist, SHARED_KINDS, type SharedLarge, type SharedStore } from "./store.ts";
import { EVERYTHING, type StoreChange } from "./store-change.ts";

interface Serials {
  readonly serial: number;
  readonly externalSerial: number;
  /** Of the store that is followed ({@link ClusterStore.identity}). */
  readonly store: number;
}

type StoreMessage = Serials & {
  /** Number of what happened ({@link ClusterStore.sequence}); none where the state as it is now is told. */
  readonly sequence?: number;
} & (
    | {
        readonly action: "memory";
        readonly shared: SharedStore;
        readonly listed: readonly Kind[];
        /** Milliseconds since the source of each kind was heard of. */
        readonly ages: readonly (readonly [Kind, number])[];
      }
    | { readonly action: "large"; readonly large: SharedLarge }
    // What was written to the memory before.
    | { readonly action: "changed"; readonly kind: Kind; readonly change: StoreChange }
    | { readonly action: "put"; readonly pod: Pod }
    | { readonly action: "delete"; readonly pod: Identity }
    | { readonly action: "listed"; readonly kind: Kind }
    // How old its data are is told where they are used, too.
    | { readonly action: "confirmed"; readonly kind: Kind }
    // What changed last may have left nothing behind.
    | { readonly action: "serials" }
  );

/** Tells all that is in the store, and all that happens to it. @returns what ends that */
export function publishStore(store: ClusterStore, feed: Feed): () => void {
  const serials = (): Serials => ({
    serial: store.serial,
    externalSerial: store.externalSerial,
    store: store.identity,
  });
  const now = () => ({ ...serials(), sequence: store.sequence });
  const memory = () => ({
    action: "memory",
    shared: store.share(),
    listed: KINDS.filter((kind) => store.isKindSynced(kind)),
    ages: SHARED_KINDS.flatMap((kind): (readonly [Kind, number])[] => {
      const age = store.age(kind);
      return age === undefined ? [] : [[kind, age]];
    }),
    ...serials(),
  });
  feed.provide(function* (held) {
    // A store that was taken over is complete: what is to come follows on what the former feed told of it.
    const isHeld = held === store.identity;
    yield memory();
    if (isHeld) return;
    for (const pod of store.objects("pods")) yield { action: "put", pod, ...serials() };
    if (store.isKindSynced("pods")) yield { action: "listed", kind: "pods", ...serials() };
    yield { action: "serials", ...serials() };
  });
  let change: StoreChange | undefined;
  const tellChange = (kind: Kind): void => {
    if (change === undefined) return;
    // The first listing would name all that there is.
    const told = store.isSynced ? { ...change, podAddresses: [] } : EVERYTHING;
    change = undefined;
    feed.publish({ action: "changed", kind, change: told, ...now() });
  };
  const unsubscribe = store.subscribe((touched) => {
    change = touched;
  });
  const end = store.observe({
    put: (kind, object) => {
      if (SHARED_KINDS.includes(kind)) tellChange(kind);
      else feed.publish({ action: "put", pod: object, ...now() });
    },
    // An object that was put has more members than its identity.
    delete: (kind, { namespace, name }) => {
      if (SHARED_KINDS.includes(kind)) tellChange(kind);
      else feed.publish({ action: "delete", pod: { namespace, name }, ...now() });
    },
    listed: (kind) => feed.publish({ action: "listed", kind, ...now() }),
    confirmed: (kind) => feed.publish({ action: "confirmed", kind, ...now() }),
    moved: () => feed.publish(memory()),
    large: (large) => feed.publish({ action: "large", large, ...serials() }),
  });
  return () => {
    unsubscribe();
    end();
  };
}

/** What came by one feed. */
class FollowedFeed {
  /** The store at its other end, once that has been told. */
  store: number | undefined;
  shared: SharedStore | undefined;
  readonly listed = new Set<Kind>();

  has(kinds: ReadonlySet<Kind>): boolean {
    return SHARED_KINDS.every((kind) => !kinds.has(kind) || this.listed.has(kind));
  }
}

/**
 * Fills a store with what {@link publishStore} tells elsewhere. A reload leaves the store where it is and lets it follow a second feed for
 * a while: that of the configuration in force, and that of the next one, which begins with all there is. What happened comes by both
 * then, in order by each, and counts once. The state itself is true whenever it is told.
 */
export class StoreReplica {
  readonly #store: ClusterStore;
  readonly #values = new SharedValues();
  /** In the order in which they began. */
  readonly #feeds: FollowedFeed[] = [];
  /** Whose memory is read. */
  #joined: { readonly store: number; readonly layout: number } | undefined;
  /** The stores that are followed, and the number of what came last of each: two, if the next configuration has made one anew. */
  readonly #sequences = new Map<number, number>();
  /** The pods that a store that is new does not name are gone once they are listed. */
  #pods: Relist<Pod> | undefined;

  constructor(store: ClusterStore) {
    this.#store = store;
  }

  /** @returns what ends that */
  follow(feed: Feed): () => void {
    const followed = new FollowedFeed();
    this.#feeds.push(followed);
    // The other end of the same feed is always the function above.
    feed.receive(
      (received) => this.#take(followed, received as StoreMessage),
      () => this.#followed,
    );
    return () => {
      const at = this.#feeds.indexOf(followed);
      if (at < 0) return;
      this.#feeds.splice(at, 1);
      this.#join();
    };
  }

  /** The store that is followed since last, `undefined` while there is none or not all of it is here. */
  get #followed(): number | undefined {
    return this.#store.isSynced && this.#pods === undefined ? [...this.#sequences.keys()].at(-1) : undefined;
  }

  #take(from: FollowedFeed, message: StoreMessage): void {
    if (!this.#feeds.includes(from)) return;
    const { store: followed, sequence } = message;
    from.store = followed;
    const last = this.#sequences.get(followed);
    if (last === undefined) this.#begin(followed);
    if (message.action === "memory") this.#takeMemory(from, message);
    else if (message.action === "listed") from.listed.add(message.kind);
    if (sequence !== undefined) {
      if (sequence <= (last ?? 0)) {
        // It came by another feed before, which may be another store's memory by now.
        if (message.action === "listed") this.#join();
        return;
      }
      this.#sequences.set(followed, sequence);
    }
    this.#apply(message);
    this.#store.adoptSerials(message.serial, message.externalSerial);
  }

  #apply(message: StoreMessage): void {
    const store = this.#store;
    switch (message.action) {
      case "large":
        this.#takeLarge(message.store, message.large);
        break;
      case "changed":
        store.heard(message.kind);
        store.announce(message.change);
        break;
      case "put":
        this.#keep(withSharedLabels(message.pod, this.#values));
        break;
      case "delete":
        store.delete("pods", message.pod);
        break;
      case "listed":
        this.#listed(message.kind);
        break;
      case "confirmed":
        store.confirm(message.kind);
        break;
    }
  }

  #begin(followed: number): void {
    if (this.#sequences.size > 0) this.#pods = this.#store.relist("pods");
    for (const former of [...this.#sequences.keys()].slice(0, -1)) this.#sequences.delete(former);
    this.#sequences.set(followed, 0);
  }

  #takeMemory(
    from: FollowedFeed,
    { shared, listed, ages }: Extract<StoreMessage, { readonly action: "memory" }>,
  ): void {
    // By two feeds of one store the memory comes in the same order, but not at the same time.
    if ((from.shared?.columns.layout ?? -1) <= shared.columns.layout) from.shared = shared;
    for (const kind of listed) from.listed.add(kind);
    this.#join();
    for (const [kind, age] of ages) this.#store.heard(kind, age);
    for (const kind of listed) if (SHARED_KINDS.includes(kind)) this.#listed(kind);
  }

  #takeLarge(store: number, large: SharedLarge): void {
    for (const feed of this.#feeds) {
      if (feed.store !== store || feed.shared === undefined) continue;
      // Who joins later joins with it.
      feed.shared = withLarge(feed.shared, large);
    }
    if (this.#joined?.store === store) this.#store.receiveLarge(large);
  }

  /** Reads the memory of the feed that began last and has everything; of the first one as soon as there is any. */
  #join(): void {
    const { kinds } = this.#store;
    const complete = this.#feeds.filter((feed) => feed.shared !== undefined && feed.has(kinds));
    const chosen = complete.at(-1) ?? this.#feeds.find(({ shared }) => shared !== undefined);
    if (chosen?.shared === undefined || chosen.store === undefined) return;
    const joined = this.#joined;
    const { layout } = chosen.shared.columns;
    if (joined?.store === chosen.store && joined.layout >= layout) return;
    this.#joined = { store: chosen.store, layout };
    this.#store.join(chosen.shared);
    if (joined !== undefined && joined.store !== chosen.store) this.#store.announce(EVERYTHING);
  }

  #keep(pod: Pod): void {
    if (this.#pods === undefined) this.#store.put("pods", pod);
    else this.#pods.put(pod);
  }

  #listed(kind: Kind): void {
    this.#join();
    if (kind !== "pods" || this.#pods === undefined) this.#store.markListed(kind);
    else {
      const listing = this.#pods;
      this.#pods = undefined;
      listing.commit();
    }
  }
}

function withLarge(shared: SharedStore, { table, large }: SharedLarge): SharedStore {
  const others = <T extends { readonly slot: number }>(all: readonly T[]): T[] =>
    all.filter(({ slot }) => slot !== large.slot);
  if (table === "services") return { ...shared, services: [...others(shared.services), large] };
  return { ...shared, endpoints: [...others(shared.endpoints), large] };
}

/** Copying a pod copies its labels, which many pods have in common. */
function withSharedLabels(pod: Pod, shared: SharedValues): Pod {
  return { ...pod, labels: shared.labelSet([...pod.labels]) };
}
