/** Reads single entries of a slab: for the console, and to find the entry that answers a question. */
import { Name } from "../../dns/name.ts";
import { FOLD, readU16 } from "../../dns/octets.ts";
import { type BlockMemory, UNIT_OCTETS, UNIT_WORDS } from "../../lib/collections/slab/block-memory.ts";
import type { Asked } from "../../plugin/message/asked.ts";
import { Head, Key, MESSAGE_OCTETS, NAME_START } from "../../plugin/packed/entry-layout.ts";
import type { KeptAnswer } from "./kept-answer.ts";

/** An entry as values. */
export interface EntryFacts {
  readonly unit: number;
  readonly name: Name;
  readonly type: number;
  readonly class: number;
  readonly rcode: number;
  /** Seconds. */
  readonly ttl: number;
  readonly answers: number;
}

/** Whether an entry answers the question of a query, with these traits. */
export function isAbout(blocks: BlockMemory, unit: number, traits: number, query: Asked): boolean {
  const { words, octets } = blocks;
  const { bytes, nameEnd } = query;
  if (
    ((words[unit * UNIT_WORDS + Head.KEY] as number) & Key.MATCH) !==
    (nameEnd | (traits << Key.TRAITS_SHIFT))
  )
    return false;
  const fold = FOLD;
  const message = unit * UNIT_OCTETS + MESSAGE_OCTETS;
  for (let at = NAME_START; at < nameEnd; at++)
    if (fold[bytes[at] as number] !== octets[message + at]) return false;
  for (let at = nameEnd; at < nameEnd + 4; at++) if (bytes[at] !== octets[message + at]) return false;
  return true;
}

/** Reads the head of an entry, except for its time. @returns its word {@link Head.KEY} */
export function readHead(kept: KeptAnswer, unit: number, words: Int32Array, head: number): number {
  const key = words[head + Head.KEY] as number;
  kept.unit = unit;
  kept.serial = words[head + Head.SERIAL] as number;
  kept.hash = words[head + Head.HASH] as number;
  kept.traits = (key & Key.MATCH) >> Key.TRAITS_SHIFT;
  kept.rcode = (key >> Key.RCODE_SHIFT) & Key.RCODE;
  kept.error = (key & Key.ERROR) !== 0;
  kept.answers = (key & Key.ANSWERS) !== 0;
  kept.flags = (words[head + Head.FLAGS_RUNS] as number) & 0xffff;
  kept.ttl = words[head + Head.TTL] as number;
  return key;
}

export function entryFacts({ words, octets }: BlockMemory, unit: number): EntryFacts {
  const head = unit * UNIT_WORDS;
  const key = words[head + Head.KEY] as number;
  const start = unit * UNIT_OCTETS + MESSAGE_OCTETS;
  const nameEnd = start + (key & Key.NAME_END);
  return {
    unit,
    name: Name.fromCheckedWire(Uint8Array.from(octets.subarray(start + NAME_START, nameEnd))),
    type: readU16(octets, nameEnd),
    class: readU16(octets, nameEnd + 2),
    rcode: (key >> Key.RCODE_SHIFT) & Key.RCODE,
    ttl: words[head + Head.TTL] as number,
    answers: (words[head + Head.ANSWERS_AUTHORITIES] as number) & 0xffff,
  };
}
