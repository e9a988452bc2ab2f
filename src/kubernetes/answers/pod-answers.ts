/** Names below `pod` (docs/spec/kubernetes-dns.md#names-of-pods). */
import type { Name } from "../../dns/name.ts";
import { addressKey, parseDashedAddress } from "../objects/addresses.ts";
import { addressLengthOf, addressRecord } from "./address-records.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { ClusterName } from "./name-grammar.ts";
import {
  answered,
  NO_DATA,
  NO_NAMESPACE,
  NO_PODS,
  NO_SUCH_POD,
  NOT_AN_ADDRESS,
  type Resolution,
} from "./resolution.ts";

/** Answers for a name of the kinds `podNamespace` and `pod`. */
export function resolvePod(view: ClusterView, parsed: ClusterName, owner: Name, type: number): Resolution {
  if (view.pods === "disabled") return NO_PODS;
  if (!view.hasNamespaceOf(parsed)) return NO_NAMESPACE;
  if (parsed.kind === "podNamespace") return NO_DATA;

  const octets = parseDashedAddress(parsed.endpoint);
  if (octets === undefined) return NOT_AN_ADDRESS;
  if (view.pods === "verified") {
    const pods = view.store.pods.at(addressKey(octets));
    if (!pods.some(({ namespace }) => namespace === parsed.namespace)) return NO_SUCH_POD;
  }
  const length = addressLengthOf(type);
  if (length === 0 || length !== octets.length) return NO_DATA;
  return answered([addressRecord(owner, view.ttl, octets, 0, length)]);
}
