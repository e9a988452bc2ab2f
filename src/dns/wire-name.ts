/** A mutable name as octets, for changing a name on its way from one message into another. */
import type { Name } from "./name.ts";
import { FOLD, octetAt } from "./octets.ts";

const MAX_NAME_OCTETS = 255;

export class WireName {
  /** The uncompressed name, root octet included; only the first {@link length} count. */
  readonly octets: Uint8Array = new Uint8Array(MAX_NAME_OCTETS);
  length = 0;

  /** Offset of the labels of `ancestor`, if the name is `ancestor` or below it; else -1. */
  placeOf(ancestor: Uint8Array): number {
    const place = this.length - ancestor.length;
    if (place < 0) return -1;
    for (let at = 0; at <= place; at += octetAt(this.octets, at) + 1) {
      if (at !== place) continue;
      for (let index = 0; index < ancestor.length; index++)
        if (octetAt(FOLD, octetAt(this.octets, place + index)) !== octetAt(ancestor, index)) return -1;
      return place;
    }
    return -1;
  }

  /**
   * Replaces all labels from `place` on with the uncompressed name in `bytes[start, end)`. A name that would become too long stays
   * as it is.
   */
  replaceFrom(place: number, bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    if (place + end - start > MAX_NAME_OCTETS) return;
    for (let at = start; at < end; at++) this.octets[place + at - start] = octetAt(bytes, at);
    this.length = place + end - start;
  }

  set(name: Name): void {
    this.octets.set(name.wire);
    this.length = name.wire.length;
  }
}
