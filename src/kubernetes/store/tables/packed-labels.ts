/**
 * The labels of a pod as octets, in the order of their keys:
 *
 *     n  labels: octets of the key (2), key, octets of the value (2), value
 */
import { MAX_BLOCK_OCTETS } from "./block-table.ts";
import { readText } from "./short-text.ts";

const HEAD = 2;

/** Writes sets of labels, one after the other into the same octets. */
export class LabelWriter {
  /** Made for the first: few configurations keep labels. */
  #octets: Buffer | undefined;
  #last: ReadonlyMap<string, string> | undefined;
  #end = 0;

  /** What no block has room for, 64 KiB, is left out. @returns octets that hold until the next call */
  write(labels: ReadonlyMap<string, string>): Uint8Array {
    this.#octets ??= Buffer.allocUnsafe(MAX_BLOCK_OCTETS);
    // Pods of one template come one after the other.
    if (labels !== this.#last) {
      this.#last = labels;
      this.#end = writeLabels(this.#octets, labels);
    }
    return this.#octets.subarray(0, this.#end);
  }
}

function writeLabels(octets: Buffer, labels: ReadonlyMap<string, string>): number {
  let end = 0;
  for (const [key, value] of [...labels].sort(byKey)) {
    const room = 2 * HEAD + Buffer.byteLength(key) + Buffer.byteLength(value);
    if (end + room > MAX_BLOCK_OCTETS) continue;
    end = writeText(octets, value, writeText(octets, key, end));
  }
  return end;
}

/** @param start where they begin, and `end` where they end */
export function readLabels(octets: Buffer, start: number, end: number): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (let at = start; at < end; ) {
    const value = at + HEAD + octets.readUInt16LE(at);
    const behind = value + HEAD + octets.readUInt16LE(value);
    labels.set(readText(octets, at + HEAD, value), readText(octets, value + HEAD, behind));
    at = behind;
  }
  return labels;
}

function writeText(octets: Buffer, text: string, at: number): number {
  const length = octets.write(text, at + HEAD, "utf8");
  octets.writeUInt16LE(length, at);
  return at + HEAD + length;
}

function byKey([one]: readonly [string, string], [other]: readonly [string, string]): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
