/** The page `/cache`: all records as one tree, in JSON (docs/spec/kube-dns.md#pages). */
import type { Name } from "../../dns/name.ts";
import type { ClusterView } from "../../kubernetes/answers/cluster-view.ts";
import { type KubeDnsEntry, kubeDnsEntriesOf } from "../../kubernetes/answers/kube-dns-tree.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";

interface CacheNode {
  readonly ChildNodes: Record<string, CacheNode>;
  readonly Entries: Record<string, CacheEntry>;
}

interface CacheEntry {
  readonly host: string;
  readonly port?: number;
  readonly priority: number;
  readonly weight: number;
  readonly ttl: number;
}

/** Services handled in one turn of the event loop. */
const SERVICES_PER_TURN = 200;

export async function cachePage(view: ClusterView, domain: Name): Promise<string> {
  const root = emptyNode();
  const top = [...domain.toString().split(".").slice(0, -1)].reverse();
  let count = 0;
  // A copy, because services are added and removed between two turns.
  for (const key of Array.from(view.store.services.entries(), (entry) => entry.key)) {
    const entry = view.store.services.entry(key);
    if (entry === undefined || !view.selects(entry.namespaceName)) continue;
    for (const each of kubeDnsEntriesOf(entry))
      put(root, [...top, ...each.name.toReversed()], each, domain, view.ttl);
    if (++count % SERVICES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  return JSON.stringify(root, undefined, "\t");
}

function put(root: CacheNode, path: readonly string[], entry: KubeDnsEntry, domain: Name, ttl: number): void {
  let node = root;
  for (const label of path.slice(0, -1)) {
    node.ChildNodes[label] ??= emptyNode();
    node = node.ChildNodes[label];
  }
  const { host, isInside, port } = entry;
  const name = host instanceof Uint8Array ? formatIpAddress(host) : host.join(".");
  const text = host instanceof Uint8Array || !isInside ? name : `${name}.${domain}`;
  node.Entries[entry.label] = { host: text, ...(port !== 0 && { port }), priority: 10, weight: 10, ttl };
}

function emptyNode(): CacheNode {
  return { ChildNodes: Object.create(null), Entries: Object.create(null) };
}
