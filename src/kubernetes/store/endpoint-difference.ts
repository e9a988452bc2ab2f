/** Which addresses a change of an endpoint set concerns. */
import { type AddressKey, addressKey } from "../objects/addresses.ts";
import type { EndpointSet } from "../objects/objects.ts";
import type { ChangeRecorder } from "./store-change.ts";

/** Each address of a set, ready or not. */
export function forEachAddress(set: Pick<EndpointSet, "groups">, callback: (key: AddressKey) => void): void {
  for (const { addresses, addressLength } of set.groups) {
    for (let at = 0; at < addresses.length; at += addressLength)
      callback(addressKey(addresses, at, addressLength));
  }
}

/** Names the addresses that are in one of two states of a set only, or ready in one only, or named otherwise. */
export function recordEndpointDifference(
  old: EndpointSet | undefined,
  set: EndpointSet | undefined,
  change: ChangeRecorder,
): void {
  if (old === undefined || set === undefined || old.service !== set.service) {
    for (const one of [old, set]) if (one !== undefined) forEachAddress(one, (key) => change.address(key));
    return;
  }
  const before = describeAddresses(old);
  const after = describeAddresses(set);
  for (const [key, description] of before) if (after.get(key) !== description) change.address(key);
  for (const key of after.keys()) if (!before.has(key)) change.address(key);
}

/** Under each address how its endpoints are named, and whether they are ready. */
function describeAddresses(set: EndpointSet): Map<AddressKey, string> {
  const descriptions = new Map<AddressKey, string>();
  for (const group of set.groups) {
    for (let index = 0; index < group.count; index++) {
      const key = addressKey(group.addresses, index * group.addressLength, group.addressLength);
      const readiness = index < group.readyCount ? ",ready" : ",not ready";
      // What is named after its address is so in both states.
      const label = group.labels?.[index];
      const description = label ? `${label}${readiness}` : readiness;
      const known = descriptions.get(key);
      descriptions.set(key, known === undefined ? description : known + description);
    }
  }
  return descriptions;
}
