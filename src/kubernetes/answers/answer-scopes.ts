/**
 * What of the cluster an answer rests on, as a number: answers that were kept are forgotten by the same number when that changes. Two
 * things may share a number; then one is forgotten with the other.
 */
import type { Name } from "../../dns/name.ts";
import { octetAt } from "../../dns/octets.ts";
import { type AddressKey, addressKey, parseDashedAddress } from "../objects/addresses.ts";
import { addressOfReverseName } from "../store/tables/reverse-names.ts";
import type { StoreChange } from "../store/tables/store-change.ts";
import type { ClusterZone } from "./cluster-zone.ts";

/** Of answers that stay true whatever happens to services, endpoints and pods: only namespaces can change them. */
export const UNCHANGING = 0;
/** Of answers in which every change may show: the name servers of a zone are services, too. */
export const EVERY_CHANGE = 1;

/** What the answer to a name of a zone rests on, where it is no alias. What becomes of its namespace is not looked at. */
export function scopeOf(name: Name, zone: ClusterZone): number {
  const count = name.labelCount - zone.name.labelCount;
  if (count === 0) return EVERY_CHANGE;
  if (zone.isReverse) {
    const key = addressOfReverseName(name);
    // Any address may be one that begins so.
    return key === undefined ? EVERY_CHANGE : addressScope(key);
  }
  if (name.isLabel(count - 1, "svc")) return count < 3 ? UNCHANGING : serviceScope(name, count - 3);
  if (!name.isLabel(count - 1, "pod")) return EVERY_CHANGE;
  const octets = count === 3 ? parseDashedAddress(name.labelText(0)) : undefined;
  return octets === undefined ? UNCHANGING : podScope(addressKey(octets));
}

/** Tells the scopes of a change. Namespaces are not among them: they change everything in them. */
export function forEachScope(change: StoreChange, callback: (scope: number) => void): void {
  const { services, addresses, podAddresses } = change;
  callback(EVERY_CHANGE);
  for (const key of services) callback(scopeOfService(key));
  for (const key of addresses) callback(addressScope(key));
  for (const key of podAddresses) callback(podScope(key));
}

/** That of a key `service.namespace`. */
export function scopeOfService(key: string): number {
  return hashText(key);
}

/** That of `service.namespace`, whose labels are the two of a name behind the first `inFront`. */
export function serviceScope(name: Name, inFront: number): number {
  const { folded } = name;
  let at = name.labelStart(inFront);
  let hash = OFFSET;
  for (let label = 0; label < 2; label++) {
    const end = at + octetAt(folded, at) + 1;
    if (label > 0) hash = Math.imul(hash ^ DOT, PRIME);
    for (at++; at < end; at++) hash = Math.imul(hash ^ octetAt(folded, at), PRIME);
  }
  return finish(hash);
}

/** Of what is known of an address. */
export function addressScope(key: AddressKey): number {
  return typeof key === "number" ? finish(Math.imul(OFFSET ^ key, PRIME)) : hashText(key);
}

/** Not that of its reverse name. */
function podScope(key: AddressKey): number {
  return addressScope(key) ^ POD;
}

function hashText(text: string): number {
  let hash = OFFSET;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), PRIME);
  return finish(hash);
}

/** High bits into the low ones, which are what counts. Signed: V8 makes no object of such a number. */
function finish(hash: number): number {
  return hash ^ (hash >>> 15);
}

/** FNV-1a. */
const OFFSET = 0x811c9dc5;
const PRIME = 0x01000193;
const DOT = 0x2e;
const POD = 0x2a5f;
