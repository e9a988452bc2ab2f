/** Why pods and addresses have no names. */
import type { Name } from "../../dns/name.ts";
import { RecordType, recordTypeName } from "../../dns/type-names.ts";
import type { ClusterView } from "../answers/cluster-view.ts";
import type { ClusterName } from "../answers/name-grammar.ts";
import { type AddressKey, addressKey, formatAddressKey, parseDashedAddress } from "../objects/addresses.ts";
import { addressOfReverseName } from "../store/tables/reverse-names.ts";
import { listOf } from "./why-not-words.ts";

/** Why a name below `pod` has no records. Its namespace exists. */
export function whyNoPod(view: ClusterView, parsed: ClusterName, type: number): string {
  if (view.pods === "disabled") return "'pods disabled' is in force: pods have no names";
  if (parsed.kind === "podNamespace")
    return `namespace ${parsed.namespace} exists; it has pods below it and no records of its own`;
  const octets = parseDashedAddress(parsed.endpoint);
  if (octets === undefined)
    return `${parsed.endpoint} is not an IP address written with dashes, as in 10-244-1-5`;
  const key = addressKey(octets);
  const address = formatAddressKey(key);
  if (view.pods === "verified") {
    const pods = view.store.pods.at(key);
    if (pods.length === 0) return `no running pod has the address ${address}`;
    if (!pods.some(({ namespace }) => namespace === parsed.namespace))
      return `${address} is the address of ${podsText(pods)}, not of a pod in namespace ${parsed.namespace}`;
  }
  const family = octets.length === 4 ? "IPv4" : "IPv6";
  if (type === RecordType.A || type === RecordType.AAAA)
    return `${address} is an ${family} address, and there is no ${recordTypeName(type)} record for it`;
  return `there are no ${recordTypeName(type)} records: a pod has addresses only`;
}

/** Why a name below a reverse zone does not exist. */
export function whyNoReverse(view: ClusterView, name: Name): string {
  const key = addressOfReverseName(name);
  if (key === undefined)
    return "the name is not that of a whole address, and no address of the cluster has a name below it";
  return whyNoNameOf(view, key);
}

function whyNoNameOf(view: ClusterView, key: AddressKey): string {
  const address = formatAddressKey(key);
  const { services, pods } = view.store;
  for (const entry of services.servicesAt(key))
    return `${address} belongs to Service ${entry.namespace.name}/${entry.name}, whose namespace is not selected`;
  for (const set of services.endpointSetsAt(key)) {
    const entry = set.owner;
    const full = `${set.namespace}/${set.service}`;
    if (entry.service === undefined)
      return `${address} is in a slice of Service ${full}, which does not exist`;
    if (entry.service.type === "externalName")
      return `${address} is in a slice of Service ${full}, which is an ExternalName`;
    if (!view.shows(entry))
      return `${address} is an endpoint of Service ${full}, whose namespace is not selected`;
    return `${address} is an endpoint of Service ${full} that is not ready, and publishNotReadyAddresses is off`;
  }
  const owners = pods.at(key);
  if (owners.length > 0)
    return `${address} is the address of ${podsText(owners)}, which is behind no Service`;
  if (!view.store.kinds.has("endpoints"))
    return `no Service has the address ${address}, and 'noendpoints' is in force`;
  return `neither a Service nor an endpoint has the address ${address}`;
}

function podsText(pods: readonly { readonly namespace: string; readonly name: string }[]): string {
  return `pod ${listOf(pods.map(({ namespace, name }) => `${namespace}/${name}`))}`;
}
