/**
 * Encoded answers of an authoritative source, kept until its data change: asking the same question again costs a look-up
 * instead of a synthesis. This is not a cache in the sense of DNS: nothing in it grows old. `clear` forgets all of it at once, `forget`
 * what rests on one part of the data.
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
  /** What it rests on, and how often that had changed. */
  readonly scope: number;
  readonly changes: number;
  /** The serial that it repeats; {@link NO_SERIAL} for none. */
  readonly serial: number;
}

/** Questions that may be remembered. A stranger who asks for many names only makes others forgotten. */
const SLOTS = 16_384;
const TYPE_PRIME = 0x9e3779b1;
/** Scopes that are told apart. Those that share a place are forgotten together. */
const SCOPES = 16_384;
const NO_SERIAL = -1;

export class AnswerMemo {
  readonly #slots: (Remembered | undefined)[] = new Array<Remembered | undefined>(SLOTS);
  /** How often what is in each scope has changed. */
  readonly #changes = new Uint32Array(SCOPES);
  #generation = 0;

  /**
   * The answer given to this question since what it rests on changed, in a shell of its own.
   * @param serial that of the source's zones, if answers repeat it
   */
  find(query: Query, serial: number = NO_SERIAL): Reply | undefined {
    const slot = slotOf(query);
    const first = this.#slots[slot];
    if (first !== undefined && this.#fits(first, query, serial)) return revive(first, query);
    const second = this.#slots[slot ^ 1];
    return second !== undefined && this.#fits(second, query, serial) ? revive(second, query) : undefined;
  }

  /**
   * Keeps an answer that depends on nothing but the question and the source's data.
   * @param scope what it rests on: a number of the source's choice, to be told to {@link forget}
   * @param serial that of the zone, where the answer has its SOA record
   */
  remember(query: Query, reply: Reply, scope = 0, serial: number = NO_SERIAL): void {
    const slot = slotOf(query);
    const free = this.#isCurrent(slot) && !this.#isCurrent(slot ^ 1) ? slot ^ 1 : slot;
    const place = scope & (SCOPES - 1);
    this.#slots[free] = {
      name: query.name.folded,
      type: query.type,
      encoded: reply.encoded,
      rcode: reply.rcode,
      flags: reply.flags,
      generation: this.#generation,
      scope: place,
      changes: this.#changes[place] ?? 0,
      serial,
    };
  }

  /** Forgets what rests on a part of the data. */
  forget(scope: number): void {
    const place = scope & (SCOPES - 1);
    this.#changes[place] = (this.#changes[place] ?? 0) + 1;
  }

  /** Forgets everything: the data changed. */
  clear(): void {
    this.#generation++;
  }

  #isCurrent(slot: number): boolean {
    const remembered = this.#slots[slot];
    return remembered !== undefined && this.#isTrue(remembered);
  }

  #isTrue({ generation, scope, changes }: Remembered): boolean {
    return generation === this.#generation && changes === this.#changes[scope];
  }

  #fits(remembered: Remembered, query: Query, serial: number): boolean {
    if (remembered.type !== query.type || !this.#isTrue(remembered)) return false;
    if (remembered.serial !== serial && remembered.serial !== NO_SERIAL) return false;
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
