/** The octets of derived queries. */
import { type Edns, writeOpt } from "../../dns/edns.ts";
import type { Name } from "../../dns/name.ts";
import { octetAt, passingCopy, readU16, writeU16 } from "../../dns/octets.ts";
import { WireWriter } from "../../dns/wire-writer.ts";
import type { Asked } from "./asked.ts";

/** The possible changes of a derived query. */
export interface QueryChanges {
  readonly name?: Name;
  readonly type?: number;
  readonly class?: number;
  /** The second header word: opcode and flags. */
  readonly flags?: number;
  /** Replaces OPT, or drops it (if present and `undefined`). */
  readonly edns?: Edns | undefined;
  /** Leaves out TSIG, and nothing else. */
  readonly unsigned?: true;
}

/** The query that another query is derived from. */
export interface OriginalQuery extends Asked {
  readonly length: number;
  readonly isSigned: boolean;
  readonly tsigOffset: number;
}

/** Whether only OPT follows the question. */
export function isPlain({ bytes, length, questionEnd, optOffset }: OriginalQuery): boolean {
  if (length === questionEnd) return true;
  return optOffset === questionEnd + 1 && length === optOffset + 10 + readU16(bytes, optOffset + 8);
}

/** A copy with changes that keep the offsets of all parts. */
export function patchedOctets(query: OriginalQuery, changes: QueryChanges): Uint8Array {
  const cut = changes.unsigned === true && query.isSigned;
  const octets = passingCopy(query.bytes, 0, cut ? query.tsigOffset : query.length);
  if (cut) writeU16(octets, 10, readU16(octets, 10) - 1);
  return patch(octets, query, 0, changes);
}

/** A copy with another name: patched if {@link isPlain}, else rebuilt. */
export function renamedOctets(query: OriginalQuery, name: Name, changes: QueryChanges): Uint8Array {
  if (!isPlain(query)) return rebuiltOctets(query, changes);
  const { bytes, nameEnd, length } = query;
  const { wire } = name;
  const moved = 12 + wire.length - nameEnd;
  // From Node's pool: an allocation of its own would cost as much as everything else here.
  const octets = Buffer.allocUnsafe(length + moved);
  for (let at = 0; at < 12; at++) octets[at] = octetAt(bytes, at);
  for (let at = 0; at < wire.length; at++) octets[12 + at] = octetAt(wire, at);
  for (let at = nameEnd; at < length; at++) octets[at + moved] = octetAt(bytes, at);
  return patch(octets, query, moved, changes);
}

/** Builds header, question and OPT anew; drops everything else behind the question. */
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

/** Whether only the second header word changes. */
export function onlyFlags(changes: QueryChanges): boolean {
  return (
    changes.name === undefined &&
    changes.type === undefined &&
    changes.class === undefined &&
    changes.unsigned === undefined &&
    !("edns" in changes)
  );
}

/** @param moved octets by which everything behind the name has moved */
function patch(
  octets: Uint8Array,
  query: OriginalQuery,
  moved: number,
  { flags, type, class: recordClass, edns }: QueryChanges,
): Uint8Array {
  const nameEnd = query.nameEnd + moved;
  // The original may share its octets with a derived query that has other flags.
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
