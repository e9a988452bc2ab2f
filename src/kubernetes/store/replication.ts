/**
 * One store filled like another: the data plane that watches the cluster tells the others on their threads (`multisocket`). Messages
 * carry objects as the store keeps them, and the serials, so that every data plane names the same in SOA.
 */
import type { Feed } from "../../plugin/site.ts";
import { type Identity, KINDS, type Kind, type ObjectOfKind, type Pod } from "../objects/objects.ts";
import { SharedValues } from "../objects/shared-values.ts";
import type { ClusterStore } from "./store.ts";

interface Serials {
  readonly serial: number;
  readonly externalSerial: number;
}

type PutMessage = {
  readonly [K in Kind]: { readonly action: "put"; readonly kind: K; readonly object: ObjectOfKind[K] };
}[Kind];

type StoreMessage = Serials &
  (
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
  const serials = (): Serials => ({ serial: store.serial, externalSerial: store.externalSerial });
  feed.provide(function* () {
    for (const kind of KINDS) {
      for (const object of store.objects(kind)) yield { action: "put", kind, object, ...serials() };
    }
    for (const kind of KINDS) {
      if (store.isKindSynced(kind)) yield { action: "listed", kind, ...serials() };
    }
    yield { action: "serials", ...serials() };
  });
  return store.observe({
    put: (kind, object) => feed.publish({ action: "put", kind, object, ...serials() }),
    // An object that was put has more members than its identity.
    delete: (kind, { namespace, name }) =>
      feed.publish({ action: "delete", kind, identity: { namespace, name }, ...serials() }),
    listed: (kind) => feed.publish({ action: "listed", kind, ...serials() }),
    confirmed: (kind) => feed.publish({ action: "confirmed", kind, ...serials() }),
  });
}

/** Fills a replica with what {@link publishStore} tells elsewhere. */
export function followStore(store: ClusterStore, feed: Feed): void {
  const shared = new SharedValues();
  feed.receive((received) => {
    // The other end of the same feed is always the function above.
    const message = received as StoreMessage;
    if (message.action === "put") put(store, message, shared);
    else if (message.action === "delete") store.delete(message.kind, message.identity);
    else if (message.action === "listed") store.markListed(message.kind);
    else if (message.action === "confirmed") store.confirm(message.kind);
    store.adoptSerials(message.serial, message.externalSerial);
  });
}

function put(store: ClusterStore, message: PutMessage, shared: SharedValues): void {
  if (message.kind === "pods") store.put("pods", withSharedLabels(message.object, shared));
  else store.put(message.kind, message.object);
}

/** Copying a pod copies its labels, which many pods have in common. */
function withSharedLabels(pod: Pod, shared: SharedValues): Pod {
  return { ...pod, labels: shared.labelSet([...pod.labels]) };
}
