/** Hashes of 32 bits for tables of objects of the cluster. They are not keyed: whoever may create objects may do worse. */
import { octetAt } from "../../../dns/octets.ts";

/** FNV-1a, with the high bits in the low ones. */
export function hashText(start: number, text: string): number {
  let hash = spread(start) ^ 0x811c_9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x0100_0193);
  return (hash ^ (hash >>> 15)) | 0;
}

/** The same of a label, from its length octet on, whose octets are ASCII. */
export function hashLabel(start: number, octets: Uint8Array, at: number): number {
  const end = at + octetAt(octets, at);
  let hash = spread(start) ^ 0x811c_9dc5;
  for (let next = at + 1; next <= end; next++) hash = Math.imul(hash ^ octetAt(octets, next), 0x0100_0193);
  return (hash ^ (hash >>> 15)) | 0;
}

/** The same of octets. */
export function hashOctets(octets: Uint8Array): number {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < octets.length; at++) hash = Math.imul(hash ^ (octets[at] ?? 0), 0x0100_0193);
  return (hash ^ (hash >>> 15)) | 0;
}

/** Neighbouring numbers come to stand far from each other, and different ones stay different (the last step of MurmurHash3). */
export function spread(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2_ae35);
  return hash ^ (hash >>> 16);
}
