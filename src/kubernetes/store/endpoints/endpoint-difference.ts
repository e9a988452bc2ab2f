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
  if (old.addressLength !== 4 || set.addressLength !== 4) return false;
  const was = wordsOf(old);
  const is = wordsOf(set);
  const ranges = differentRanges(old, was, set, is);
  if (ranges === undefined) return false;
  for (const range of ranges) {
    const { front, oldEnd, newFront, newEnd } = range;
    for (let at = front; at < oldEnd; at++)
      if (isUnequal(was, is, range, was[at])) change.address(ipv4At(old, at));
    for (let at = newFront; at < newEnd; at++)
      if (isUnequal(was, is, range, is[at])) change.address(ipv4At(set, at));
  }
  return true;
}

function isUnequal(
  was: Int32Array,
  is: Int32Array,
  { front, oldEnd, newFront, newEnd }: DifferentRange,
  word: number | undefined,
): boolean {
  return timesIn(was, front, oldEnd, word) !== timesIn(is, newFront, newEnd, word);
}

/**
 * The addresses of IPv4 as words, to be compared with one another: their octets are in the order of this machine. A change that comes alone runs code
 * that V8 has hardly optimized, in which four octets with a call for each take ten times as long as a word.
 */
function wordsOf({ addresses }: EndpointGroup): Int32Array {
  // Words have to be aligned, which the store's addresses are not.
  return new Int32Array(new Uint8Array(addresses).buffer);
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
 * @param was the words of the old one, and `is` of the new one
 * @returns undefined for so much that it is quicker to look addresses up
 */
function differentRanges(
  old: EndpointGroup,
  was: Int32Array,
  set: EndpointGroup,
  is: Int32Array,
): readonly DifferentRange[] | undefined {
  const ready = differentRange(was, 0, old.readyCount, is, 0, set.readyCount);
  const others = differentRange(was, old.readyCount, old.count, is, set.readyCount, set.count);
  return lengthOf(ready) + lengthOf(others) > MOST_COMPARED ? undefined : [ready, others];
}

function differentRange(
  was: Int32Array,
  oldStart: number,
  oldStop: number,
  is: Int32Array,
  newStart: number,
  newStop: number,
): DifferentRange {
  let front = oldStart;
  let newFront = newStart;
  while (front < oldStop && newFront < newStop && was[front] === is[newFront]) {
    front++;
    newFront++;
  }
  let oldEnd = oldStop;
  let newEnd = newStop;
  while (oldEnd > front && newEnd > newFront && was[oldEnd - 1] === is[newEnd - 1]) {
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

/** How often a word is in a part of a group. */
function timesIn(words: Int32Array, front: number, end: number, word: number | undefined): number {
  let times = 0;
  for (let index = front; index < end; index++) if (words[index] === word) times++;
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
    const isPlain = old.addressLength === 4 && set.addressLength === 4;
    const was = isPlain ? wordsOf(old) : NO_WORDS;
    const is = isPlain ? wordsOf(set) : NO_WORDS;
    const ranges = isPlain ? differentRanges(old, was, set, is) : undefined;
    if (ranges !== undefined) {
      const gone: number[] = [];
      const come: number[] = [];
      for (const { front, oldEnd, newFront, newEnd } of ranges) {
        addOnlyIn(old, was, front, oldEnd, is, gone);
        addOnlyIn(set, is, newFront, newEnd, was, come);
      }
      return { gone, come };
    }
  }
  const known = addressesOf(before);
  const now = addressesOf(after);
  return { gone: [...known].filter((key) => !now.has(key)), come: [...now].filter((key) => !known.has(key)) };
}

const NO_WORDS = new Int32Array();

/** Adds the addresses in a part of a group that another group has nowhere, each once. */
function addOnlyIn(
  group: EndpointGroup,
  words: Int32Array,
  front: number,
  end: number,
  other: Int32Array,
  keys: number[],
): void {
  for (let at = front; at < end; at++) {
    if (other.includes(words[at] ?? 0)) continue;
    const key = ipv4At(group, at);
    if (!keys.includes(key)) keys.push(key);
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
