/**
 * One cluster for all threads: the data plane that watches the cluster writes it into memory that the others read (`multisocket`), and tells
 * them what changed, so that they forget what they remember of it. It tells the serials, too, so that every data plane names the same in SOA.
 */
import type { Feed } from "../../../plugin/contract/site.ts";
import { KINDS, type Kind } from "../../objects/objects.ts";
import type { ClusterStore, SharedLarge, SharedStore } from "../store.ts";
import { EVERYTHING, type StoreChange } from "../tables/store-change.ts";

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
    | { readonly action: "listed"; readonly kind: Kind }
    // How old its data are is told where they are used, too.
    | { readonly action: "confirmed"; readonly kind: Kind }
  );

/** Tells where the store lies, and all that happens to it. @returns what ends that */
export function publishStore(store: ClusterStore, feed: Feed): () => void {
  const serials = (): Serials => ({
    serial: store.serial,
    externalSerial: store.externalSerial,
    store: store.identity,
  });
  const now = () => ({ ...serials(), sequence: store.sequence });
  const memory = (): StoreMessage => ({
    action: "memory",
    shared: store.share(),
    listed: KINDS.filter((kind) => store.isKindSynced(kind)),
    ages: KINDS.flatMap((kind): (readonly [Kind, number])[] => {
      const age = store.age(kind);
      return age === undefined ? [] : [[kind, age]];
    }),
    ...serials(),
  });
  feed.provide(function* () {
    yield* store.prepareToShare();
    yield memory();
  });
  let untold: (Serials & { readonly kind: Kind; readonly sequence: number }) | undefined;
  const tellUntold = (): void => {
    if (untold !== undefined) feed.publish({ action: "changed", change: EVERYTHING, ...untold });
    untold = undefined;
  };
  const tell = (message: StoreMessage): void => {
    tellUntold();
    feed.publish(message);
  };
  let change: StoreChange | undefined;
  const tellChange = (kind: Kind): void => {
    if (change === undefined) return;
    const told = change;
    change = undefined;
    if (store.isSynced) tell({ action: "changed", kind, change: told, ...now() });
    else {
      // The first lists would name all that there is: once a turn, with the last of it, everything is said to have changed.
      if (untold === undefined) setImmediate(tellUntold);
      untold = { kind, ...now() };
    }
  };
  const unsubscribe = store.subscribe((touched) => {
    change = touched;
  });
  const end = store.observe({
    put: tellChange,
    delete: tellChange,
    listed: (kind) => tell({ action: "listed", kind, ...now() }),
    confirmed: (kind) => tell({ action: "confirmed", kind, ...now() }),
    moved: () => tell(memory()),
    large: (large) => tell({ action: "large", large, ...serials() }),
  });
  return () => {
    unsubscribe();
    end();
    untold = undefined;
  };
}

/** What came by one feed. */
class FollowedFeed {
  /** The store at its other end, once that has been told. */
  store: number | undefined;
  shared: SharedStore | undefined;
  readonly listed = new Set<Kind>();

  has(kinds: ReadonlySet<Kind>): boolean {
    return [...kinds].every((kind) => this.listed.has(kind));
  }
}

/**
 * Makes a store read what {@link publishStore} announces in another thread. A reload leaves the store where it is and lets it follow a second feed for
 * a while: that of the configuration in force, and that of the next one. What happened comes by both then, in order by each, and counts
 * once. The state itself is true whenever it is told.
 */
export class StoreReplica {
  readonly #store: ClusterStore;
  /** In the order in which they began. */
  readonly #feeds: FollowedFeed[] = [];
  /** Whose memory is read. */
  #joined: { readonly store: number; readonly layout: number } | undefined;
  /** The stores that are followed, and the number of what came last of each: two, if the next configuration has made one anew. */
  readonly #sequences = new Map<number, number>();

  constructor(store: ClusterStore) {
    this.#store = store;
  }

  /** @returns what ends that */
  follow(feed: Feed): () => void {
    const followed = new FollowedFeed();
    this.#feeds.push(followed);
    // The other end of the same feed is always the function above.
    feed.receive((received) => this.#take(followed, received as StoreMessage));
    return () => {
      const at = this.#feeds.indexOf(followed);
      if (at < 0) return;
      this.#feeds.splice(at, 1);
      this.#join();
    };
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
      case "listed":
        this.#join();
        store.markListed(message.kind);
        break;
      case "confirmed":
        store.confirm(message.kind);
        break;
    }
  }

  #begin(followed: number): void {
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
    for (const kind of listed) this.#store.markListed(kind);
  }

  #takeLarge(store: number, large: SharedLarge): void {
    for (const feed of this.#feeds) {
      if (feed.store !== store || feed.shared === undefined) continue;
      // A thread that joins later joins with it.
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
}

function withLarge(shared: SharedStore, { table, large }: SharedLarge): SharedStore {
  const others = <T extends { readonly slot: number }>(all: readonly T[]): T[] =>
    all.filter(({ slot }) => slot !== large.slot);
  if (table === "services") return { ...shared, services: [...others(shared.services), large] };
  return { ...shared, endpoints: [...others(shared.endpoints), large] };
}
