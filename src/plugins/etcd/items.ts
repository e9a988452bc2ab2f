/** The items of one name, whatever their source. */
import type { Name } from "../../dns/name.ts";
import { matchesPattern, nameOfKey, patternOfName } from "../../etcd/skydns/key-path.ts";
import { readServiceItem, type ServiceItem, ServiceItemError } from "../../etcd/skydns/service-item.ts";
import { formatIpAddress, isIpv4Mapped, parseIpAddress } from "../../lib/net/ip-address.ts";

/** The item of one key, with the defaults of the server filled in. */
export interface Item extends ServiceItem {
  readonly key: string;
  /** How the item answers a query for addresses. An item without a host, or with text beside a host name, is `text`. */
  readonly kind: "ipv4" | "ipv6" | "name" | "text";
  /** The address in canonical text, if the host is one. */
  readonly address: string;
}

/** A key as read. */
export interface KeyEntry {
  readonly key: string;
  readonly value: Buffer;
  /** Remaining milliseconds of its lease, `Infinity` without one. */
  readonly leaseLeft: number;
}

/** The result for a name. */
export type Reading =
  | { readonly kind: "found"; readonly items: readonly Item[] }
  | { readonly kind: "missing" }
  | { readonly kind: "failed"; readonly error: Error };

export const MISSING: Reading = { kind: "missing" };

export interface ItemRules {
  /** Seconds, for items without a TTL. */
  ttl: number;
  priority: number;
  /** Milliseconds. */
  readonly minLease: number;
  readonly maxLease: number;
}

/** Findings about the leases of an answer. */
export interface LeaseMarks {
  /** Whether the answer depends on the time. */
  hasLease: boolean;
  /** Whether a lease has expired. */
  isStale: boolean;
}

/**
 * Makes a reading of the keys that were found. A malformed value affects only its own key: the question fails only if
 * there are no other items.
 */
export function readItems(entries: readonly KeyEntry[], rules: ItemRules, marks: LeaseMarks): Reading {
  if (entries.length === 0) return MISSING;
  const items: Item[] = [];
  let problem: ServiceItemError | undefined;
  for (const entry of entries) {
    try {
      items.push(itemOf(entry, rules, marks));
    } catch (error) {
      if (!(error instanceof ServiceItemError)) throw error;
      problem ??= error;
    }
  }
  if (items.length === 0 && problem !== undefined) return { kind: "failed", error: problem };
  return { kind: "found", items: ofOneGroup(items) };
}

function itemOf({ key, value, leaseLeft }: KeyEntry, rules: ItemRules, marks: LeaseMarks): Item {
  const item = readServiceItem(key, value);
  const octets = item.host === "" ? undefined : parseIpAddress(item.host);
  const isIpv4 = octets !== undefined && (octets.length === 4 || isIpv4Mapped(octets));
  return {
    ...item,
    key,
    kind: isIpv4
      ? "ipv4"
      : octets !== undefined
        ? "ipv6"
        : item.host !== "" && item.text === ""
          ? "name"
          : "text",
    address:
      octets === undefined ? "" : formatIpAddress(isIpv4 ? octets.subarray(octets.length - 4) : octets),
    priority: item.priority === 0 ? rules.priority : item.priority,
    ttl: ttlOf(item.ttl, leaseLeft, rules, marks),
  };
}

/** Seconds: the item's TTL or the rest of its lease, whichever is less. */
function ttlOf(own: number, leaseLeft: number, rules: ItemRules, marks: LeaseMarks): number {
  if (leaseLeft === Number.POSITIVE_INFINITY) return own === 0 ? rules.ttl : own;
  marks.hasLease = true;
  if (leaseLeft < 0) marks.isStale = true;
  const lease = Math.floor(Math.min(Math.max(leaseLeft, rules.minLease), rules.maxLease) / 1000);
  return own === 0 ? lease : Math.min(own, lease);
}

/**
 * Items of the same group as those with the shortest keys, and items without a group; all items if those have no
 * group, or several (docs/spec/kube-dns.md#wildcards-and-groups).
 */
function ofOneGroup(items: readonly Item[]): readonly Item[] {
  if (items.every(({ group }) => group === "")) return items;
  const shortest = Math.min(...items.map(({ key }) => depth(key)));
  const groups = new Set(items.filter(({ key }) => depth(key) === shortest).map(({ group }) => group));
  groups.delete("");
  const [group] = groups;
  if (group === undefined || groups.size > 1) return items;
  return items.filter((item) => item.group === "" || item.group === group);
}

function depth(key: string): number {
  return key.split("/").length;
}

/** Where keys come from: mirrored here, or read from etcd each time. */
export interface KeySource<Result> {
  below(key: string): Result;
  exactly(key: string): Result;
}

export type Found = readonly KeyEntry[] | Promise<readonly KeyEntry[]>;

/**
 * The keys for a name: all keys below it, else the key itself; with wildcards, all matching keys. @param exact only
 * the key itself
 */
export function findKeys(
  source: KeySource<Found>,
  prefix: string,
  key: string,
  name: Name,
  exact: boolean,
): Found {
  const pattern = patternOfName(prefix, name);
  const top = pattern?.top ?? key;
  const fit = (entries: readonly KeyEntry[]) =>
    pattern === undefined ? entries : entries.filter((entry) => matchesPattern(pattern, entry.key));
  const orExactly = (entries: readonly KeyEntry[]): Found =>
    entries.length > 0 ? fit(entries) : source.exactly(top);
  if (exact) return source.exactly(top);
  const below = source.below(top);
  return below instanceof Promise ? below.then(orExactly) : orExactly(below);
}

/** The target name of an item, without the labels that it strips. */
export function targetOfItem(prefix: string, item: Item): Name | undefined {
  const name = nameOfKey(prefix, item.key);
  if (name === undefined || item.targetStrip <= 0 || item.targetStrip >= name.labelCount) return name;
  return name.suffix(item.targetStrip);
}
