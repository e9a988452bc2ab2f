/** The queries of floods: each is another one, as long as the flood lasts. */
import { encodeMessage, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { RecordType } from "../../src/dns/type-names.ts";
import { seededRandom } from "../numbers/random.ts";

export const FLOODS = [
  "random names",
  "longest names",
  "colliding names",
  "fuzzed messages",
  "answers of 64 KiB",
] as const;
export type FloodKind = (typeof FLOODS)[number];

/** Of names that have answers of 64 KiB, over TCP. */
export const LARGE_ZONE = "large.flood.example";
const FLOOD_ZONE = "flood.example";

/** @param seed two floods with different ones have no name in common */
export function* floodQueries(kind: FloodKind, seed: number): Generator<Uint8Array, never, undefined> {
  const random = seededRandom(seed);
  const names = NAMES[kind](seed, random);
  for (;;) {
    const name = names.next().value;
    const type = kind === "answers of 64 KiB" ? RecordType.TXT : RecordType.A;
    const query = encodeMessage(makeQuery({ name, type }, { id: Math.floor(random() * 0x1_0000) }));
    yield kind === "fuzzed messages" ? mutated(query, random) : query;
  }
}

type Names = Generator<Name, never, undefined>;

const NAMES: Readonly<Record<FloodKind, (seed: number, random: () => number) => Names>> = {
  "random names": (seed) => numberedNames(seed, FLOOD_ZONE),
  "longest names": (_, random) => longestNames(random),
  "colliding names": (seed) => collidingNames(seed),
  "fuzzed messages": (seed) => numberedNames(seed, FLOOD_ZONE),
  "answers of 64 KiB": (seed) => numberedNames(seed, LARGE_ZONE),
};

function* numberedNames(seed: number, zone: string): Names {
  for (let number = 0; ; number++) yield Name.parse(`n${number}-${seed}.${zone}`);
}

/** Of 255 octets: three labels of 63 and one of 61 (RFC 1035 section 3.1). */
function* longestNames(random: () => number): Names {
  for (;;) yield Name.parse([63, 63, 63, 61].map((length) => letters(length, random)).join("."));
}

function letters(length: number, random: () => number): string {
  let text = "";
  for (let at = 0; at < length; at++) text += ALPHABET[Math.floor(random() * ALPHABET.length)];
  return text;
}

const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";
const CODES = Uint8Array.from(ALPHABET, (letter) => letter.charCodeAt(0));

/** FNV-1a, from the end of the name to its beginning: the hash that any attacker can compute. */
const FNV_PRIME = 0x01000193;
const FNV_BASIS = 0x811c9dc5 | 0;
/** The lowest bits of the hash that all these names have in common: as many as there are places for remembered answers. */
export const COLLIDING_BITS = 14;
const COLLIDING_MASK = 2 ** COLLIDING_BITS - 1;
/** Letters at the front of a name that are tried out. */
const TRIED = 3;

/** Names whose hashes end in the same bits, as an attacker picks them who has the source and not the secret seed. */
export function* collidingNames(seed: number): Names {
  for (let number = 0; ; number++) {
    const wire = Uint8Array.from(Name.parse(`aaa${number}-${seed}.${FLOOD_ZONE}`).wire);
    let tail = FNV_BASIS;
    for (let at = wire.length - 1; at > TRIED; at--) tail = Math.imul(tail ^ (wire[at] ?? 0), FNV_PRIME);
    const length = wire[0] ?? 0;
    for (const third of CODES) {
      const three = Math.imul(tail ^ third, FNV_PRIME);
      for (const second of CODES) {
        const two = Math.imul(three ^ second, FNV_PRIME);
        for (const first of CODES) {
          const one = Math.imul(two ^ first, FNV_PRIME);
          if ((Math.imul(one ^ length, FNV_PRIME) & COLLIDING_MASK) !== 0) continue;
          wire.set([first, second, third], 1);
          yield Name.fromCheckedWire(Uint8Array.from(wire));
        }
      }
    }
  }
}

/** With a few octets changed, cut off or added. */
function mutated(query: Uint8Array, random: () => number): Uint8Array {
  const upTo = (count: number): number => Math.floor(random() * count);
  const octets = Uint8Array.from(query);
  for (let changes = 1 + upTo(8); changes > 0; changes--) octets[upTo(octets.length)] = upTo(256);
  const way = upTo(4);
  if (way === 0) return octets.subarray(0, 1 + upTo(octets.length));
  if (way === 1) return Buffer.concat([octets, Uint8Array.from({ length: 1 + upTo(40) }, () => upTo(256))]);
  return octets;
}
