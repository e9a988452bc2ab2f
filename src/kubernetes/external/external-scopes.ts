/** What of the cluster an answer in an external zone rests on, as a number: see `answers/answer-scopes.ts`. */
import type { Name } from "../../dns/name.ts";
import {
  addressScope,
  EVERY_CHANGE,
  scopeOfService,
  serviceScope,
  UNCHANGING,
} from "../answers/answer-scopes.ts";
import { addressOfReverseName } from "../store/tables/reverse-names.ts";
import type { StoreChange } from "../store/tables/store-change.ts";
import type { ExternalZone } from "./external-zone.ts";

/** What the answer to a name of a zone rests on. What becomes of its namespace is not looked at. */
export function externalScopeOf(name: Name, zone: ExternalZone): number {
  const count = name.labelCount - zone.name.labelCount;
  // Which services lead to this server may change with any of them.
  if (count === 0 || name.isAtOrBelow(zone.apex)) return EVERY_CHANGE;
  if (zone.isReverse) {
    const key = addressOfReverseName(name);
    // Any address may be one that begins so.
    return key === undefined ? EVERY_CHANGE : addressScope(key);
  }
  return count === 1 ? UNCHANGING : serviceScope(name, count - 2);
}

/** Tells the scopes of a change. Namespaces are not among them: they change everything in them. */
export function forEachExternalScope(change: StoreChange, callback: (scope: number) => void): void {
  callback(EVERY_CHANGE);
  for (const key of change.externalServices) callback(scopeOfService(key));
  // Whether there is such a service, and of which type; with the option 'headless' its endpoints.
  for (const key of change.services) callback(scopeOfService(key));
  for (const key of change.externalAddresses) callback(addressScope(key));
}
