/** Which addresses a change of an endpoint set concerns. */
import { readU32 } from "../../../dns/octets.ts";
import { type AddressKey, addressKey } from "../../objects/addresses.ts";
import type { EndpointGroup, EndpointSet } from "../../objects/objects.ts";
import type { ChangeRecorder } from "../tables/store-change.ts";

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
  if (recordPlainDifference(old.groups, set.groups, change)) return;
  const before = describeAddresses(old);
  const after = describeAddresses(set);
  for (const [key, description] of before) if (after.get(key) !== description) change.address(key);
  for (const key of after.keys()) if (!before.has(key)) change.address(key);
}

/**
 * The same for nearly all slices: one group of IPv4 addresses without names. What stands in both at the front or at the end is passed over,
 * and little is left where one pod was replaced.
 * @returns whether it could be done
 */
function recordPlainDifference(
  before: readonly EndpointGroup[],
  after: readonly EndpointGroup[],
  change: ChangeRecorder,
): boolean {
  const [old] = before;
  const [set] = after;
  if (old === undefined || set === undefined || before.length + after.length > 2) return false;
  if (!isPlain(old) || !isPlain(set)) return false;
  const least = Math.min(old.count, set.count);
  let front = 0;
  while (front < least && isSame(old, front, set, front)) front++;
  let end = 0;
  while (end < least - front && isSame(old, old.count - 1 - end, set, set.count - 1 - end)) end++;
  if (old.count + set.count - 2 * (front + end) > MOST_COMPARED) return false;
  for (const group of [old, set])
    for (let at = front; at < group.count - end; at++)
      if (timesIn(old, front, end, group, at) !== timesIn(set, front, end, group, at))
        change.address(addressKey(group.addresses, at * 4, 4));
  return true;
}

/** With more endpoints than this it is quicker to look addresses up. */
const MOST_COMPARED = 16;

function isPlain({ addressLength, labels }: EndpointGroup): boolean {
  return addressLength === 4 && labels === undefined;
}

/** How often an endpoint of `other` is among those of a group, but for so many at its front and its end. */
function timesIn(group: EndpointGroup, front: number, end: number, other: EndpointGroup, at: number): number {
  let times = 0;
  for (let index = front; index < group.count - end; index++) if (isSame(group, index, other, at)) times++;
  return times;
}

/** Whether two endpoints have the same address of IPv4, and both or none are ready. */
function isSame(one: EndpointGroup, at: number, other: EndpointGroup, index: number): boolean {
  if (at < one.readyCount !== index < other.readyCount) return false;
  const [left, right] = [at * 4, index * 4];
  for (let octet = 0; octet < 4; octet++)
    if (one.addresses[left + octet] !== other.addresses[right + octet]) return false;
  return true;
}

/** Which addresses one of two states of a set has, and the other has not: each once, the order is that of the sets. */
export function differentAddresses(
  before: Pick<EndpointSet, "groups">,
  after: Pick<EndpointSet, "groups">,
): { readonly gone: readonly AddressKey[]; readonly come: readonly AddressKey[] } {
  const [old] = before.groups;
  const [set] = after.groups;
  const isPlainPair = before.groups.length === 1 && after.groups.length === 1;
  if (isPlainPair && old?.addressLength === 4 && set?.addressLength === 4) {
    const least = Math.min(old.count, set.count);
    let front = 0;
    while (front < least && ipv4At(old, front) === ipv4At(set, front)) front++;
    let end = 0;
    while (end < least - front && ipv4At(old, old.count - 1 - end) === ipv4At(set, set.count - 1 - end))
      end++;
    if (old.count + set.count - 2 * (front + end) <= MOST_COMPARED)
      return { gone: onlyIn(old, front, end, set), come: onlyIn(set, front, end, old) };
  }
  const known = addressesOf(before);
  const now = addressesOf(after);
  return { gone: [...known].filter((key) => !now.has(key)), come: [...now].filter((key) => !known.has(key)) };
}

/** Those of a group, but for so many at its front and its end, that another group has nowhere. */
function onlyIn(group: EndpointGroup, front: number, end: number, other: EndpointGroup): number[] {
  const keys: number[] = [];
  for (let at = front; at < group.count - end; at++) {
    const key = ipv4At(group, at);
    let index = 0;
    while (index < other.count && ipv4At(other, index) !== key) index++;
    if (index === other.count && !keys.includes(key)) keys.push(key);
  }
  return keys;
}

/** The same as `addressKey` of an address of IPv4. */
function ipv4At({ addresses }: EndpointGroup, index: number): number {
  return readU32(addresses, 4 * index) | 0;
}

/** Each address of a set once. */
export function addressesOf(set: Pick<EndpointSet, "groups">): Set<AddressKey> {
  const keys = new Set<AddressKey>();
  forEachAddress(set, (key) => keys.add(key));
  return keys;
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
