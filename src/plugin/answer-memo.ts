/**
 * Encoded answers of an authoritative source, kept until its data change: asking the same question again costs a look-up
 * instead of a synthesis. This is not a cache in the sense of DNS: nothing in it grows old, and `clear` forgets all of it at once.
 */
import type { EncodedSections } from "../dns/encoded-sections.ts";
import { hashName } from "../dns/name.ts";
import { FOLD, octetAt } from "../dns/octets.ts";
import type { Query } from "./query.ts";
import { Reply } from "./reply.ts";

interface Remembered {
  readonly name: Uint8Array;
  readonly type: number;
  readonly encoded: EncodedSections;
  readonly rcode: number;
  readonly flags: number;
  readonly generation: number;
}

/** Questions that may be remembered. A stranger who asks for many names only makes others forgotten. */
const SLOTS = 16_384;
const TYPE_PRIME = 0x9e3779b1;

export class AnswerMemo {
  readonly #slots: (Remembered | undefined)[] = new Array<Remembered | undefined>(SLOTS);
  #generation = 0;

  /** The answer given to this question since the last {@link clear}, in a shell of its own. */
  find(query: Query): Reply | undefined {
    const slot = slotOf(query);
    const first = this.#slots[slot];
    if (first !== undefined && this.#fits(first, query)) return revive(first, query);
    const second = this.#slots[slot ^ 1];
    return second !== undefined && this.#fits(second, query) ? revive(second, query) : undefined;
  }

  /** Keeps an answer that depends on nothing but the question and the source's data. */
  remember(query: Query, reply: Reply): void {
    const slot = slotOf(query);
    const free = this.#isCurrent(slot) && !this.#isCurrent(slot ^ 1) ? slot ^ 1 : slot;
    this.#slots[free] = {
      name: query.name.folded,
      type: query.type,
      encoded: reply.encoded,
      rcode: reply.rcode,
      flags: reply.flags,
      generation: this.#generation,
    };
  }

  /** Forgets everything: the data changed. */
  clear(): void {
    this.#generation++;
  }

  #isCurrent(slot: number): boolean {
    return this.#slots[slot]?.generation === this.#generation;
  }

  #fits(remembered: Remembered, query: Query): boolean {
    if (remembered.generation !== this.#generation || remembered.type !== query.type) return false;
    const { name } = remembered;
    if (name.length !== query.nameEnd - 12) return false;
    const { bytes } = query;
    for (let at = 0; at < name.length; at++) {
      if (octetAt(FOLD, octetAt(bytes, 12 + at)) !== octetAt(name, at)) return false;
    }
    return true;
  }
}

function slotOf(query: Query): number {
  const hash = hashName(query.bytes, 12, query.nameEnd) ^ Math.imul(query.type, TYPE_PRIME);
  // The low bits of the name hash vary least in its last step: fold the high ones in.
  return (hash ^ (hash >>> 15)) & (SLOTS - 1);
}

function revive(remembered: Remembered, query: Query): Reply {
  const reply = new Reply(query, remembered);
  reply.flags = remembered.flags;
  return reply;
}
