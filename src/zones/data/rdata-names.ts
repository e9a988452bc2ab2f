/** Positions of domain names in RDATA, for the types with names that a server uses. */
import { FOLD, octetAt } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";

/** Octets before the names, and the number of names. */
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

/** Names of the types of RFC 1035, which may be compressed (RFC 3597 section 4) and are compared without regard to case. */
export function compressibleNames(type: number): NamesInRdata | undefined {
  return type < 64 ? COMPRESSIBLE[type] : undefined;
}

/** Offset of the host whose addresses belong in the additional section; -1 for types without one. */
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

/**
 * Whether RDATA of the same length are equal, ignoring case in the names of {@link compressibleNames}.
 * @param differ the first octet that differs
 */
export function areSameData(
  type: number,
  bytes: Uint8Array,
  at: number,
  rdata: Uint8Array,
  length: number,
  differ: number,
): boolean {
  const names = compressibleNames(type);
  if (names === undefined || differ < names.offset) return false;
  let namesEnd = names.offset;
  for (let left = names.count; left > 0 && namesEnd < length; left--) namesEnd += nameLength(rdata, namesEnd);
  // Length octets are below any letter.
  for (let index = differ; index < length; index++) {
    const one = octetAt(bytes, at + index);
    const other = octetAt(rdata, index);
    if (one !== other && (index >= namesEnd || octetAt(FOLD, one) !== octetAt(FOLD, other))) return false;
  }
  return true;
}

/** A copy of RDATA with the names of {@link compressibleNames} in lower case. */
export function foldedData(type: number, rdata: Uint8Array): Uint8Array {
  const folded = rdata.slice();
  const names = compressibleNames(type);
  if (names === undefined) return folded;
  let at = names.offset;
  for (let left = names.count; left > 0; left--) {
    const end = at + nameLength(rdata, at);
    for (; at < end; at++) folded[at] = octetAt(FOLD, octetAt(rdata, at));
  }
  return folded;
}

/** Octets of the uncompressed name at `at`, root included. */
export function nameLength(bytes: Uint8Array, at: number): number {
  let end = at;
  while (octetAt(bytes, end) !== 0) end += octetAt(bytes, end) + 1;
  return end + 1 - at;
}

/** A copy of a name in lower case. */
export function foldedName(name: Uint8Array, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, at) => octetAt(FOLD, octetAt(name, at)));
}
