/** The memory layout of a mention: see entry-mentions.ts. */

/** Words of a mention. The name follows them, in wire form and lower case. */
export const Mention = {
  /** The unit of the entry. */
  ENTRY: 0,
  /** Octets of the name. */
  LENGTH: 1,
  /** Links of the name tree; no node while it is not linked. */
  NODE: 2,
  NEXT: 3,
  PREVIOUS: 4,
} as const;

const MENTION_WORDS = 5;
export const MENTION_OCTETS: number = 4 * MENTION_WORDS;
