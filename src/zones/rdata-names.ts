/** Where domain names stand in RDATA, for the types whose names a server looks at. */
import { FOLD, octetAt } from "../dns/octets.ts";
import { RecordType } from "../dns/type-names.ts";

/** Octets in front of the names, and how many names there are. */
export interface NamesInRdata {
  readonly offset: number;
  readonly count: number;
}

const ONE: NamesInRdata = { offset: 0, count: 1 };
const TWO: NamesInRdata = { offset: 0, count: 2 };

const COMPRESSIBLE: readonly (NamesInRdata | undefined)[] = sparse([
  [RecordType.NS, ONE],
  [RecordType.MD, ONE],
  [RecordType.MF, ONE],
  [RecordType.CNAME, ONE],
  [RecordType.SOA, TWO],
  [RecordType.MB, ONE],
  [RecordType.MG, ONE],
  [RecordType.MR, ONE],
  [RecordType.PTR, ONE],
  [RecordType.MINFO, TWO],
  [RecordType.MX, { offset: 2, count: 1 }],
]);

function sparse(rows: readonly (readonly [number, NamesInRdata])[]): readonly (NamesInRdata | undefined)[] {
  const table = new Array<NamesInRdata | undefined>(64);
  for (const [type, names] of rows) table[type] = names;
  return table;
}

/** Names of the types of RFC 1035, which may be compressed (RFC 3597 section 4) and are kept in lower case. */
export function compressibleNames(type: number): NamesInRdata | undefined {
  return type < 64 ? COMPRESSIBLE[type] : undefined;
}

/** Where the host stands whose addresses belong into the additional section; -1 for types without one. */
export function hostOffset(type: number): number {
  switch (type) {
    case RecordType.NS:
      return 0;
    case RecordType.MX:
    case RecordType.SVCB:
    case RecordType.HTTPS:
      return 2;
    case RecordType.SRV:
      return 6;
    default:
      return -1;
  }
}

/** Puts the names that {@link compressibleNames} tells of into lower case, in place. */
export function foldNames(type: number, bytes: Uint8Array, at: number): void {
  const names = compressibleNames(type);
  if (names === undefined) return;
  let to = at + names.offset;
  for (let left = names.count; left > 0; left--) {
    while (octetAt(bytes, to) !== 0) {
      const end = to + octetAt(bytes, to);
      for (to++; to <= end; to++) bytes[to] = octetAt(FOLD, octetAt(bytes, to));
    }
    to++;
  }
}

/** Octets of the uncompressed name at `at`, root included. */
export function nameLength(bytes: Uint8Array, at: number): number {
  let end = at;
  while (octetAt(bytes, end) !== 0) end += octetAt(bytes, end) + 1;
  return end + 1 - at;
}

/** A name in lower case, in octets of its own. */
export function foldedName(name: Uint8Array, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => octetAt(FOLD, octetAt(name, at)));
}
