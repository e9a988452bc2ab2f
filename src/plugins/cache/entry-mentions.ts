/**
 * The mentions at the end of an entry: one for each name that the answer depends on besides the question's (see
 * mentioned-names.ts). The name tree links them, so that the entry is found by these names, too. They begin at units
 * of the entry's own block, so they are allocated and freed with it.
 */
import {
  type BlockMemory,
  UNIT_OCTETS,
  UNIT_WORDS,
  unitsFor,
} from "../../lib/collections/slab/block-memory.ts";
import { SlabFault } from "../../lib/collections/slab/slab-fault.ts";
import { entryOctets, Head, Key, wildcardStart } from "../../plugin/packed/entry-layout.ts";
import { MENTION_OCTETS, Mention } from "./mention-layout.ts";
import { type MentionedNames, MOST_MENTIONED } from "./mentioned-names.ts";
import type { NameTree } from "./name-tree.ts";

const NONE = -1;

export class EntryMentions {
  readonly #blocks: BlockMemory;
  readonly #tree: NameTree;

  constructor(blocks: BlockMemory, tree: NameTree) {
    this.#blocks = blocks;
    this.#tree = tree;
  }

  /** Writes the mentions behind an entry of `units` units. They are not linked yet. */
  write(entry: number, units: number, { count, octets, starts }: MentionedNames): void {
    const { words } = this.#blocks;
    let mention = entry + units;
    for (let index = 0; index < count; index++) {
      const start = starts[index] as number;
      const length = (starts[index + 1] as number) - start;
      const head = mention * UNIT_WORDS;
      words[head + Mention.ENTRY] = entry;
      words[head + Mention.LENGTH] = length;
      words[head + Mention.NODE] = NONE;
      const name = mention * UNIT_OCTETS + MENTION_OCTETS;
      for (let at = 0; at < length; at++) this.#blocks.octets[name + at] = octets[start + at] as number;
      mention += mentionUnits(length);
    }
  }

  /**
   * Links the entry under its mentions. Returns false when the tree has no free node: the caller must evict other
   * entries and call again.
   */
  link(entry: number): boolean {
    const { words } = this.#blocks;
    for (let mention = this.#first(entry); mention !== NONE; mention = this.#next(entry, mention)) {
      if (words[mention * UNIT_WORDS + Mention.NODE] !== NONE) continue;
      if (!this.#tree.linkMention(mention)) return false;
    }
    return true;
  }

  unlink(entry: number): void {
    const { words } = this.#blocks;
    let left = MOST_MENTIONED;
    for (let mention = this.#first(entry); mention !== NONE; mention = this.#next(entry, mention)) {
      if (left-- === 0) throw new SlabFault("the names of an entry have no end");
      if (words[mention * UNIT_WORDS + Mention.NODE] !== NONE) this.#tree.unlinkMention(mention);
    }
  }

  #first(entry: number): number {
    return this.#within(entry, entry + ownUnits(this.#blocks, entry));
  }

  #next(entry: number, mention: number): number {
    const length = this.#blocks.words[mention * UNIT_WORDS + Mention.LENGTH] as number;
    return this.#within(entry, mention + mentionUnits(length));
  }

  #within(entry: number, mention: number): number {
    const end = entry + this.#blocks.lengthOf(entry);
    if (mention === end) return NONE;
    const head = mention * UNIT_WORDS;
    const { words } = this.#blocks;
    const length = mention > entry && mention < end ? (words[head + Mention.LENGTH] as number) : 0;
    if (length <= 0 || mention + mentionUnits(length) > end || words[head + Mention.ENTRY] !== entry)
      throw new SlabFault("an entry is not whole");
    return mention;
  }
}

/** Units that the mentions of an answer take. */
export function mentionedUnits(names: MentionedNames | undefined): number {
  if (names === undefined) return 0;
  let units = 0;
  for (let index = 0; index < names.count; index++)
    units += mentionUnits((names.starts[index + 1] as number) - (names.starts[index] as number));
  return units;
}

function mentionUnits(length: number): number {
  return Math.ceil((MENTION_OCTETS + length) / UNIT_OCTETS);
}

/** Units of an entry before its mentions. */
function ownUnits({ words }: BlockMemory, entry: number): number {
  const head = entry * UNIT_WORDS;
  const end = (words[head + Head.END_ADDITIONALS] as number) & 0xffff;
  const additionals = (words[head + Head.END_ADDITIONALS] as number) >>> 16;
  const both = words[head + Head.ANSWERS_AUTHORITIES] as number;
  const records = (both & 0xffff) + (both >>> 16) + additionals;
  const runs = (words[head + Head.FLAGS_RUNS] as number) >>> 16;
  const hasWildcard = ((words[head + Head.KEY] as number) & Key.WILDCARD) !== 0;
  const wildcard = hasWildcard ? (words[head + wildcardStart(end, records, runs)] as number) : 0;
  return unitsFor(entryOctets({ end, records, runs, wildcard }));
}
