/**
 * Keeps V8 from forgetting how objects are laid out that come and go. A collection that is to save memory, such as the
 * one after the first lists, forgets the layout of which there is no object at that moment. V8 then drops the compiled
 * code of each function that has met such an object. In a server with little to do it stays dropped, because functions
 * are compiled when they have run often.
 *
 * Of our own classes, one object that is used again and again is enough (`EventFrame`). This file is for those of Node.
 */
import { hash } from "node:crypto";
import { isPlain } from "./plain.ts";

/** Objects to hold on to for as long as the process serves. */
export function keepShapes(): readonly object[] {
  // A `Buffer` that Node makes in C++, as for a datagram, is not laid out as one that is made in JavaScript: functions such as `octetAt` meet both.
  return isPlain() ? [] : [hash("sha256", "", "buffer")];
}
