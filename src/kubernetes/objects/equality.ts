/** Whether an update of an object means anything to DNS. Most do not: a relist repeats everything, a status changes. */
import { equalAddressLists, equalOctets } from "./addresses.ts";
import type { EndpointGroup, EndpointSet, Pod, Port, Service } from "./objects.ts";

/** Whether two states of a service give the same answers in the cluster's own zones. */
export function equalServices(left: Service, right: Service): boolean {
  return (
    left.type === right.type &&
    left.externalName === right.externalName &&
    left.publishNotReadyAddresses === right.publishNotReadyAddresses &&
    equalAddressLists(left.clusterAddresses, right.clusterAddresses) &&
    equalPorts(left.ports, right.ports)
  );
}

/** Whether two states of a service give the same answers in an external zone. */
export function equalExternally(left: Service, right: Service): boolean {
  return equalTexts(left.externalAddresses, right.externalAddresses) && equalPorts(left.ports, right.ports);
}

export function equalEndpointSets(left: EndpointSet, right: EndpointSet): boolean {
  return (
    left.service === right.service &&
    left.groups.length === right.groups.length &&
    left.groups.every((group, index) => equalGroups(group, right.groups[index]))
  );
}

export function equalPods(left: Pod, right: Pod): boolean {
  if (left.addresses.length !== right.addresses.length || left.labels.size !== right.labels.size)
    return false;
  if (left.hostNetwork !== right.hostNetwork) return false;
  if (!left.addresses.every((key, index) => key === right.addresses[index])) return false;
  if (left.labels === right.labels) return true;
  for (const [key, value] of left.labels) if (right.labels.get(key) !== value) return false;
  return true;
}

function equalGroups(left: EndpointGroup, right: EndpointGroup | undefined): boolean {
  return (
    right !== undefined &&
    left.readyCount === right.readyCount &&
    equalOctets(left.addresses, right.addresses) &&
    equalTexts(left.labels, right.labels) &&
    equalTexts(left.zones, right.zones) &&
    equalPorts(left.ports, right.ports)
  );
}

export function equalPorts(left: readonly Port[], right: readonly Port[]): boolean {
  return (
    left.length === right.length &&
    left.every((port, index) => {
      const other = right[index];
      return port.name === other?.name && port.number === other.number && port.protocol === other.protocol;
    })
  );
}

function equalTexts(left: readonly string[] | undefined, right: readonly string[] | undefined): boolean {
  if (left === undefined || right === undefined) return left === right;
  return left.length === right.length && left.every((text, index) => text === right[index]);
}
