/** The octets of queries that are derived from others. */
import { type Edns, writeOpt } from "../../dns/edns.ts";
import type { Name } from "../../dns/name.ts";
import { octetAt, passingCopy, readU16, writeU16 } from "../../dns/octets.ts";
import { WireWriter } from "../../dns/wire-writer.ts";
import type { Asked } from "./asked.ts";

/** What may differ in a query derived from another one. */
export interface QueryChanges {
  readonly name?: Name;
  readonly type?: number;
  readonly class?: number;
  /** The second header word: opcode and flags. */
  readonly flags?: number;
  /** Replaces OPT, or drops it (`undefined` given). */
  readonly edns?: Edns | undefined;
  /** Leaves out TSIG, and nothing else. */
  readonly unsigned?: true;
}

/** The query that another one is derived from. */
export interface OriginalQuery extends Asked {
  readonly length: number;
  readonly isSigned: boolean;
  readonly tsigOffset: number;
}

/** Whether nothing but OPT stands behind the question. */
export function isPlain({ bytes, length, questionEnd, optOffset }: OriginalQuery): boolean {
  if (length === questionEnd) return true;
  return optOffset === questionEnd + 1 && length === optOffset + 10 + readU16(bytes, optOffset + 8);
}

/** A copy with what does not change the places of its parts. */
export function patchedOctets(query: OriginalQuery, changes: QueryChanges): Uint8Array {
  const cut = changes.unsigned === true && query.isSigned;
  const octets = passingCopy(query.bytes, 0, cut ? query.tsigOffset : query.length);
  if (cut) writeU16(octets, 10, readU16(octets, 10) - 1);
  return patch(octets, query, 0, changes);
}

/** A copy with another name, octet by octet where {@link isPlain}. */
export function renamedOctets(query: OriginalQuery, name: Name, changes: QueryChanges): Uint8Array {
  if (!isPlain(query)) return rebuiltOctets(query, changes);
  const { bytes, nameEnd, length } = query;
  const { wire } = name;
  const moved = 12 + wire.length - nameEnd;
  // Out of Node's pool: memory of its own takes as long as all the rest.
  const octets = Buffer.allocUnsafe(length + moved);
  for (let at = 0; at < 12; at++) octets[at] = octetAt(bytes, at);
  for (let at = 0; at < wire.length; at++) octets[12 + at] = octetAt(wire, at);
  for (let at = nameEnd; at < length; at++) octets[at + moved] = octetAt(bytes, at);
  return patch(octets, query, moved, changes);
}

/** Header, question and OPT written anew: all else that stood behind the question is gone. */
export function rebuiltOctets(query: OriginalQuery, changes: QueryChanges): Uint8Array {
  const edns: Edns | undefined = "edns" in changes ? changes.edns : query.edns;
  const writer = new WireWriter({ capacity: 128 });
  writer.u16(query.id);
  writer.u16(changes.flags ?? query.flags);
  writer.u16(1);
  writer.u32(0);
  writer.u16(edns === undefined ? 0 : 1);
  writer.name(changes.name ?? query.name);
  writer.u16(changes.type ?? query.type);
  writer.u16(changes.class ?? query.class);
  if (edns !== undefined) writeOpt(writer, edns, 0);
  return writer.finish().slice();
}

/** Whether nothing but the second header word is to differ. */
export function onlyFlags(changes: QueryChanges): boolean {
  return (
    changes.name === undefined &&
    changes.type === undefined &&
    changes.class === undefined &&
    changes.unsigned === undefined &&
    !("edns" in changes)
  );
}

/** @param moved octets by which what stands behind the name has moved */
function patch(
  octets: Uint8Array,
  query: OriginalQuery,
  moved: number,
  { flags, type, class: recordClass, edns }: QueryChanges,
): Uint8Array {
  const nameEnd = query.nameEnd + moved;
  // Its octets may be those of a query that was derived from it, with other flags.
  writeU16(octets, 2, flags ?? query.flags);
  if (type !== undefined) writeU16(octets, nameEnd, type);
  if (recordClass !== undefined) writeU16(octets, nameEnd + 2, recordClass);
  if (edns !== undefined) {
    const optOffset = query.optOffset + moved;
    writeU16(octets, optOffset + 2, edns.udpSize);
    octets[optOffset + 5] = edns.version;
    octets[optOffset + 6] = (edns.dnssecOk ? 0x80 : 0) | (edns.compactOk === true ? 0x40 : 0);
  }
  return octets;
}
