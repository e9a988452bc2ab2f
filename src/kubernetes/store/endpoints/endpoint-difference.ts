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
 * The same for nearly all slices: one group of IPv4 addresses without names.
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
  if (old.labels !== undefined || set.labels !== undefined) return false;
  const ranges = differentRanges(old, set);
  if (ranges === undefined) return false;
  for (const range of ranges) {
    for (let at = range.front; at < range.oldEnd; at++)
      recordUnlessEqual(old, set, range, ipv4At(old, at), change);
    for (let at = range.newFront; at < range.newEnd; at++)
      recordUnlessEqual(old, set, range, ipv4At(set, at), change);
  }
  return true;
}

function recordUnlessEqual(
  old: EndpointGroup,
  set: EndpointGroup,
  { front, oldEnd, newFront, newEnd }: DifferentRange,
  key: number,
  change: ChangeRecorder,
): void {
  if (timesIn(old, front, oldEnd, key) !== timesIn(set, newFront, newEnd, key)) change.address(key);
}

/** What two groups do not have in common of the endpoints that are ready, or of the others. */
interface DifferentRange {
  /** In the old group, and in the new one. */
  readonly front: number;
  readonly oldEnd: number;
  readonly newFront: number;
  readonly newEnd: number;
}

/**
 * What is left of the endpoints that are ready, and of those that are not, when those at the front and at the end are passed over that are the same in both
 * groups. That is little where one pod was replaced, and also where one is ready no more: it goes from the ones to the others, and all behind it move up.
 * @returns undefined for addresses of IPv6, and for so much that it is quicker to look addresses up
 */
function differentRanges(old: EndpointGroup, set: EndpointGroup): readonly DifferentRange[] | undefined {
  if (old.addressLength !== 4 || set.addressLength !== 4) return undefined;
  const ready = differentRange(old, 0, old.readyCount, set, 0, set.readyCount);
  const others = differentRange(old, old.readyCount, old.count, set, set.readyCount, set.count);
  return lengthOf(ready) + lengthOf(others) > MOST_COMPARED ? undefined : [ready, others];
}

function differentRange(
  old: EndpointGroup,
  oldStart: number,
  oldStop: number,
  set: EndpointGroup,
  newStart: number,
  newStop: number,
): DifferentRange {
  let front = oldStart;
  let newFront = newStart;
  while (front < oldStop && newFront < newStop && ipv4At(old, front) === ipv4At(set, newFront)) {
    front++;
    newFront++;
  }
  let oldEnd = oldStop;
  let newEnd = newStop;
  while (oldEnd > front && newEnd > newFront && ipv4At(old, oldEnd - 1) === ipv4At(set, newEnd - 1)) {
    oldEnd--;
    newEnd--;
  }
  return { front, oldEnd, newFront, newEnd };
}

function lengthOf({ front, oldEnd, newFront, newEnd }: DifferentRange): number {
  return oldEnd - front + newEnd - newFront;
}

/** With more endpoints than this it is quicker to look addresses up. */
const MOST_COMPARED = 16;

/** How often an address of IPv4 is in a part of a group. */
function timesIn(group: EndpointGroup, front: number, end: number, key: number): number {
  let times = 0;
  for (let index = front; index < end; index++) if (ipv4At(group, index) === key) times++;
  return times;
}

/** Which addresses one of two states of a set has, and the other has not: each once, the order is that of the sets. */
export function differentAddresses(
  before: Pick<EndpointSet, "groups">,
  after: Pick<EndpointSet, "groups">,
): { readonly gone: readonly AddressKey[]; readonly come: readonly AddressKey[] } {
  const [old] = before.groups;
  const [set] = after.groups;
  if (old !== undefined && set !== undefined && before.groups.length + after.groups.length === 2) {
    const ranges = differentRanges(old, set);
    if (ranges !== undefined) {
      const gone: number[] = [];
      const come: number[] = [];
      for (const { front, oldEnd, newFront, newEnd } of ranges) {
        addOnlyIn(old, front, oldEnd, set, gone);
        addOnlyIn(set, newFront, newEnd, old, come);
      }
      return { gone, come };
    }
  }
  const known = addressesOf(before);
  const now = addressesOf(after);
  return { gone: [...known].filter((key) => !now.has(key)), come: [...now].filter((key) => !known.has(key)) };
}

/** Adds the addresses in a part of a group that another group has nowhere, each once. */
function addOnlyIn(
  group: EndpointGroup,
  front: number,
  end: number,
  other: EndpointGroup,
  keys: number[],
): void {
  for (let at = front; at < end; at++) {
    const key = ipv4At(group, at);
    if (timesIn(other, 0, other.count, key) === 0 && !keys.includes(key)) keys.push(key);
  }
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
