/**
 * The beginnings of known addresses: names in reverse zones that have no records, but names below them (RFC 8020). An address takes no
 * room here if others of its network are there already.
 */
import { type Column, ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "../../../lib/collections/slab/growing-index.ts";
import type { AddressKey } from "../../objects/addresses.ts";
import { freeMark, markedFree } from "./block-table.ts";
import { spread } from "./hashes.ts";

/** A beginning of addresses. */
export interface AddressPrefix {
  readonly isIpv4: boolean;
  /** 8, 16 or 24 of IPv4; a multiple of 4 up to 124 of IPv6. */
  readonly bits: number;
  /** The first 32 bits; those behind the prefix are 0. */
  readonly high: number;
  /** The next 32 bits. */
  readonly low: number;
}

/** Longer beginnings of IPv6 are not told apart: that would take room for each single address. A network of pods is no smaller. */
const LONGEST_IPV6 = 64;
const LONGEST_IPV4 = 24;

export class AddressPrefixes {
  readonly #index: GrowingIndex;
  /** Of each entry: how many addresses, or longer prefixes, there are. Of a free one the next free one, as a negative number. */
  readonly #counts: Column<Int32Array>;
  /** Of each entry: its bits, and 128 more for one of IPv6. */
  readonly #lengths: Column<Uint8Array>;
  readonly #highs: Column<Int32Array>;
  readonly #lows: Column<Int32Array>;
  #end = 0;
  #firstFree = NO_ENTRY;

  /** @param memory where it lies */
  constructor(memory: ColumnMemory = new ColumnMemory()) {
    this.#index = new GrowingIndex(memory);
    this.#counts = memory.int32();
    this.#lengths = memory.uint8();
    this.#highs = memory.int32();
    this.#lows = memory.int32();
  }

  get octets(): number {
    const own = this.#counts.octets + this.#lengths.octets + this.#highs.octets + this.#lows.octets;
    return this.#index.octets + own;
  }

  /** Whether an address begins so. Of IPv6, 64 bits are looked at. */
  has({ isIpv4, bits, high, low }: AddressPrefix): boolean {
    const length = isIpv4 ? bits : IPV6 | Math.min(bits, LONGEST_IPV6);
    return this.#find(length, high, low) !== NO_ENTRY;
  }

  /** An address comes. It counts as often as it is added. */
  add(key: AddressKey): void {
    const isIpv4 = typeof key === "number";
    const first = isIpv4 ? key : wordOf(key, 0);
    const second = isIpv4 ? 0 : wordOf(key, 4);
    for (let bits = longest(isIpv4); bits > 0; bits -= step(isIpv4)) {
      const entry = this.#entryFor(isIpv4 ? bits : IPV6 | bits, begin(first, bits), begin(second, bits - 32));
      // Shorter prefixes count it already.
      if (this.#turn(entry, 1) > 1) return;
    }
  }

  /** An address goes that was added before. */
  delete(key: AddressKey): void {
    const isIpv4 = typeof key === "number";
    const first = isIpv4 ? key : wordOf(key, 0);
    const second = isIpv4 ? 0 : wordOf(key, 4);
    for (let bits = longest(isIpv4); bits > 0; bits -= step(isIpv4)) {
      const entry = this.#find(isIpv4 ? bits : IPV6 | bits, begin(first, bits), begin(second, bits - 32));
      if (entry === NO_ENTRY || this.#turn(entry, -1) > 0) return;
      this.#index.remove(entry);
      this.#counts.cells[entry] = freeMark(this.#firstFree);
      this.#firstFree = entry;
    }
  }

  #turn(entry: number, by: 1 | -1): number {
    const count = (this.#counts.cells[entry] ?? 0) + by;
    this.#counts.cells[entry] = count;
    return count;
  }

  #find(length: number, high: number, low: number): number {
    const lengths = this.#lengths.cells;
    const highs = this.#highs.cells;
    const lows = this.#lows.cells;
    let entry = this.#index.first(hashOf(length, high, low));
    // A reader may be led round a circle while another thread writes: the bound ends it.
    for (let left = lengths.length; entry !== NO_ENTRY && left > 0; left--) {
      if (lengths[entry] === length && highs[entry] === high && lows[entry] === low) return entry;
      entry = this.#index.after(entry);
    }
    return NO_ENTRY;
  }

  #entryFor(length: number, high: number, low: number): number {
    const known = this.#find(length, high, low);
    if (known !== NO_ENTRY) return known;
    let entry = this.#firstFree;
    if (entry === NO_ENTRY) {
      entry = this.#end++;
      for (const column of [this.#counts, this.#lengths, this.#highs, this.#lows]) column.reserve(entry);
    } else this.#firstFree = markedFree(this.#counts.cells[entry] ?? 0);
    this.#counts.cells[entry] = 0;
    this.#lengths.cells[entry] = length;
    this.#highs.cells[entry] = high;
    this.#lows.cells[entry] = low;
    this.#index.add(entry, hashOf(length, high, low));
    return entry;
  }
}

const IPV6 = 128;

function longest(isIpv4: boolean): number {
  return isIpv4 ? LONGEST_IPV4 : LONGEST_IPV6;
}

function step(isIpv4: boolean): number {
  return isIpv4 ? 8 : 4;
}

/** The first bits of a word, and 0 behind them. */
function begin(word: number, bits: number): number {
  if (bits <= 0) return 0;
  return bits >= 32 ? word | 0 : word & (-1 << (32 - bits));
}

function wordOf(key: string, at: number): number {
  let word = 0;
  for (let index = at; index < at + 4; index++) word = (word << 8) | key.charCodeAt(index);
  return word;
}

function hashOf(length: number, high: number, low: number): number {
  return spread(spread(high) ^ spread(low + length));
}
