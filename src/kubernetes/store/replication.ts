/**
 * One store filled like another: the data plane that watches the cluster tells the others on their threads (`multisocket`). Messages
 * carry objects as the store keeps them, and the serials, so that every data plane names the same in SOA.
 */
import type { Feed } from "../../plugin/site.ts";
import { type Identity, KINDS, type Kind, type ObjectOfKind, type Pod } from "../objects/objects.ts";
import { SharedValues } from "../objects/shared-values.ts";
import type { ClusterStore, Relist } from "./store.ts";

interface Serials {
  readonly serial: number;
  readonly externalSerial: number;
  /** Of the store that is followed ({@link ClusterStore.identity}). */
  readonly store: number;
}

type PutMessage = {
  readonly [K in Kind]: { readonly action: "put"; readonly kind: K; readonly object: ObjectOfKind[K] };
}[Kind];

type StoreMessage = Serials & {
  /** Number of what happened ({@link ClusterStore.sequence}); none where the state as it is now is told. */
  readonly sequence?: number;
} & (
    | PutMessage
    | { readonly action: "delete"; readonly kind: Kind; readonly identity: Identity }
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
  feed.provide(function* (held) {
    // A store that was taken over is complete: what is to come follows on what the former feed told of it.
    if (held === store.identity) {
      yield { action: "serials", ...serials() };
      return;
    }
    for (const kind of KINDS) {
      for (const object of store.objects(kind)) yield { action: "put", kind, object, ...serials() };
    }
    for (const kind of KINDS) {
      if (store.isKindSynced(kind)) yield { action: "listed", kind, ...serials() };
    }
    yield { action: "serials", ...serials() };
  });
  return store.observe({
    put: (kind, object) => feed.publish({ action: "put", kind, object, ...now() }),
    // An object that was put has more members than its identity.
    delete: (kind, { namespace, name }) =>
      feed.publish({ action: "delete", kind, identity: { namespace, name }, ...now() }),
    listed: (kind) => feed.publish({ action: "listed", kind, ...now() }),
    confirmed: (kind) => feed.publish({ action: "confirmed", kind, ...now() }),
  });
}

/**
 * Fills a store with what {@link publishStore} tells elsewhere. A reload leaves the store where it is and lets it follow a second feed for
 * a while: that of the configuration in force, and that of the next one, which begins with all there is. What happened comes by both
 * then, in order by each, and counts once. The state itself is true whenever it is told.
 */
export class StoreReplica {
  readonly #store: ClusterStore;
  readonly #shared = new SharedValues();
  /** The stores that are followed, and the number of what came last of each: two, if the next configuration has made one anew. */
  readonly #sequences = new Map<number, number>();
  /** What a store that is new does not name is gone once its kind is listed. */
  #listings: Listings | undefined;

  constructor(store: ClusterStore) {
    this.#store = store;
  }

  follow(feed: Feed): void {
    // The other end of the same feed is always the function above.
    feed.receive(
      (received) => this.#take(received as StoreMessage),
      () => this.#followed,
    );
  }

  /** The store that is followed since last, `undefined` while there is none or not all of it is here. */
  get #followed(): number | undefined {
    const isListing = Object.values(this.#listings ?? {}).some((listing) => listing !== undefined);
    return this.#store.isSynced && !isListing ? [...this.#sequences.keys()].at(-1) : undefined;
  }

  #take(message: StoreMessage): void {
    const { store: followed, sequence } = message;
    const last = this.#sequences.get(followed);
    if (last === undefined) this.#begin(followed);
    if (sequence !== undefined) {
      if (sequence <= (last ?? 0)) return;
      this.#sequences.set(followed, sequence);
    }
    const store = this.#store;
    if (message.action === "put") this.#put(message);
    else if (message.action === "delete") store.delete(message.kind, message.identity);
    else if (message.action === "listed") this.#listed(message.kind);
    else if (message.action === "confirmed") store.confirm(message.kind);
    store.adoptSerials(message.serial, message.externalSerial);
  }

  #begin(followed: number): void {
    if (this.#sequences.size > 0) this.#listings = beginListings(this.#store);
    for (const former of [...this.#sequences.keys()].slice(0, -1)) this.#sequences.delete(former);
    this.#sequences.set(followed, 0);
  }

  #put(message: PutMessage): void {
    if (message.kind === "pods") this.#keep("pods", withSharedLabels(message.object, this.#shared));
    else this.#keep(message.kind, message.object);
  }

  #keep<K extends Kind>(kind: K, object: ObjectOfKind[K]): void {
    const listing: Relist<ObjectOfKind[K]> | undefined = this.#listings?.[kind];
    if (listing === undefined) this.#store.put(kind, object);
    else listing.put(object);
  }

  #listed(kind: Kind): void {
    const listing = this.#listings?.[kind];
    if (listing === undefined) this.#store.markListed(kind);
    else {
      this.#listings = { ...this.#listings, [kind]: undefined };
      listing.commit();
    }
  }
}

type Listings = { readonly [K in Kind]?: Relist<ObjectOfKind[K]> | undefined };

function beginListings(store: ClusterStore): Listings {
  return {
    namespaces: store.relist("namespaces"),
    services: store.relist("services"),
    endpoints: store.relist("endpoints"),
    pods: store.relist("pods"),
  };
}

/** Copying a pod copies its labels, which many pods have in common. */
function withSharedLabels(pod: Pod, shared: SharedValues): Pod {
  return { ...pod, labels: shared.labelSet([...pod.labels]) };
}
