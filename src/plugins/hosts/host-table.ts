/**
 * The contents of a hosts file, by name and by address. Blocklists have a million names, so an entry is one small
 * object and one string, and a lookup hashes the bytes of the query in place.
 */
import { type EncodedSections, Name } from "../../dns/index.ts";
import { hashName } from "../../dns/name.ts";
import { FOLD, octetAt, toLatin1 } from "../../dns/octets.ts";
import { formatIpAddress } from "../../lib/net/ip-address.ts";

/** An answer in wire form that the plugin caches here; it is dropped with the table when the file changes. */
export interface PreparedAnswer {
  readonly encoded: EncodedSections;
  /** There are more records than fit into a message. */
  readonly truncated: boolean;
}

/** One name with its addresses. */
export class HostEntry {
  /** The lower-case wire form, one octet per character. */
  readonly key: string;
  /** In the order of the lines, with duplicates. */
  ipv4: readonly string[] = NONE;
  ipv6: readonly string[] = NONE;
  preparedIpv4: PreparedAnswer | undefined = undefined;
  preparedIpv6: PreparedAnswer | undefined = undefined;
  /** Another entry with the same hash. */
  next: HostEntry | undefined;

  constructor(key: string, next: HostEntry | undefined) {
    this.key = key;
    this.next = next;
  }
}

const NONE: readonly string[] = [];

/** One address with its names. */
export class HostAddress {
  /** Like {@link HostEntry.key}, in the order of the lines. */
  readonly keys: string[] = [];
  prepared: PreparedAnswer | undefined = undefined;

  /** At most `limit` distinct names. */
  names(limit: number): Name[] {
    return distinct(this.keys, limit).map((key) =>
      Name.fromCheckedWire(new Uint8Array(Buffer.from(key, "latin1"))),
    );
  }
}

export class HostTable {
  readonly #names = new NameIndex();
  /** By the name below the asterisk. */
  readonly #wildcards = new NameIndex();
  readonly #addresses = new Map<string, HostAddress>();
  readonly #single = new Map<string, readonly [string]>();
  #size = 0;

  /** Number of addresses of all names, and of names of all addresses. */
  get size(): number {
    return this.#size;
  }

  /** @param reverse whether the address also maps to the name; never set for a wildcard */
  add(name: Name, octets: Uint8Array, reverse: boolean): void {
    const { isWildcard } = name;
    const entry = isWildcard
      ? this.#wildcards.entryFor(name.folded.subarray(2))
      : this.#names.entryFor(name.folded);
    const address = formatIpAddress(octets);
    if (octets.length === 4) entry.ipv4 = this.#append(entry.ipv4, address);
    else entry.ipv6 = this.#append(entry.ipv6, address);
    this.#size++;
    if (isWildcard || !reverse) return;
    const names = this.#addresses.get(address) ?? new HostAddress();
    if (names.keys.length === 0) this.#addresses.set(address, names);
    names.keys.push(entry.key);
    this.#size++;
  }

  /** The entry of the name whose wire form is in `bytes[start, end)`, ignoring case. */
  find(bytes: Uint8Array, start: number, end: number): HostEntry | undefined {
    return this.#names.find(bytes, start, end);
  }

  /** The entry of the wildcard that replaces the first label of the name. */
  findWildcard(bytes: Uint8Array, start: number, end: number): HostEntry | undefined {
    if (this.#wildcards.isEmpty || octetAt(bytes, start) === 0) return undefined;
    return this.#wildcards.find(bytes, start + octetAt(bytes, start) + 1, end);
  }

  /** @param address in canonical text */
  findAddress(address: string): HostAddress | undefined {
    return this.#addresses.get(address);
  }

  /** Most names of a blocklist have the same address: they share the list. */
  #append(list: readonly string[], address: string): readonly string[] {
    if (list.length > 1) {
      (list as string[]).push(address);
      return list;
    }
    const [first] = list;
    if (first !== undefined) return [first, address];
    const shared = this.#single.get(address);
    if (shared !== undefined) return shared;
    const single: readonly [string] = [address];
    this.#single.set(address, single);
    return single;
  }
}

/** Distinct values, in the order of their first appearance. */
export function distinct(values: readonly string[], limit: number): readonly string[] {
  if (values.length < 2) return values;
  const seen = new Set<string>();
  for (const value of values) {
    seen.add(value);
    if (seen.size === limit) break;
  }
  return [...seen];
}

/** Entries by the hash of their name. */
class NameIndex {
  readonly #entries = new Map<number, HostEntry>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  entryFor(folded: Uint8Array): HostEntry {
    const found = this.find(folded, 0, folded.length);
    if (found !== undefined) return found;
    const hash = hashName(folded, 0, folded.length);
    const entry = new HostEntry(toLatin1(folded), this.#entries.get(hash));
    this.#entries.set(hash, entry);
    return entry;
  }

  find(bytes: Uint8Array, start: number, end: number): HostEntry | undefined {
    let entry = this.#entries.get(hashName(bytes, start, end));
    while (entry !== undefined && !isNameAt(entry.key, bytes, start, end)) entry = entry.next;
    return entry;
  }
}

function isNameAt(key: string, bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start !== key.length) return false;
  for (let index = 0; index < key.length; index++) {
    if (key.charCodeAt(index) !== octetAt(FOLD, octetAt(bytes, start + index))) return false;
  }
  return true;
}
