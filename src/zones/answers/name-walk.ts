/** Walks from the apex of a zone down to a name (RFC 1034 section 4.3.2 step 3). */
import { octetAt } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { APEX, NO_NODE } from "../data/name-tree.ts";
import { NO_RRSET } from "../data/rrset-table.ts";
import type { ZoneRecords } from "../data/zone-records.ts";
import type { WalkedName } from "./denial.ts";

export const Walk = { FOUND: 0, MISSING: 1, DELEGATION: 2, REDIRECTION: 3 } as const;
export type WalkResult = (typeof Walk)[keyof typeof Walk];

export class NameWalk implements WalkedName {
  bytes: Uint8Array = new Uint8Array(1);
  offset = 0;
  readonly starts: Uint8Array = new Uint8Array(128);
  count = 0;
  closest = APEX;
  missing = 0;

  /**
   * Walks to the name at `bytes[at]`, which must be in the zone. `closest` is then its node, or the last existing one; with
   * DELEGATION and REDIRECTION the node with NS or DNAME.
   * @param throughCut whether the name itself may be a delegation: the parent answers for its DS
   */
  to(records: ZoneRecords, bytes: Uint8Array, at: number, length: number, throughCut: boolean): WalkResult {
    const { starts } = this;
    const { names } = records;
    this.bytes = bytes;
    this.offset = at;
    const below = length - records.apex.wire.length;
    let count = 0;
    for (let start = 0; start < below; start += octetAt(bytes, at + start) + 1) starts[count++] = start;
    this.count = count;
    this.missing = count;
    this.closest = APEX;
    if (count === 0) return Walk.FOUND;
    if (records.rrset(APEX, RecordType.DNAME) !== NO_RRSET) return Walk.REDIRECTION;
    let node = APEX;
    for (let left = count - 1; left >= 0; left--) {
      const child = names.child(node, bytes, at + octetAt(starts, left));
      if (child === NO_NODE) return Walk.MISSING;
      node = child;
      this.closest = node;
      this.missing = left;
      for (let rrset = records.first(node); rrset >= 0; rrset = records.next(rrset)) {
        const type = records.type(rrset);
        if (type === RecordType.NS && (left > 0 || !throughCut) && !this.#isWildcard(left))
          return Walk.DELEGATION;
        if (type === RecordType.DNAME && left > 0) return Walk.REDIRECTION;
      }
    }
    return Walk.FOUND;
  }

  /** NS records of a wildcard are data: RFC 4592 section 4.2 leaves their meaning open, and CoreDNS does the same. */
  #isWildcard(label: number): boolean {
    const at = this.offset + octetAt(this.starts, label);
    return octetAt(this.bytes, at) === 1 && octetAt(this.bytes, at + 1) === 0x2a;
  }
}
