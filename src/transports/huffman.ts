/** The Huffman code of HTTP header fields (RFC 7541 appendix B), shared by HPACK and QPACK; decoder only. */

/**
 * Code lengths in bits of each octet, and of the end (EOS), as base-32 digits. The code is canonical: codes of one length are in
 * the order of their octets, and shorter ones come first.
 */
const LENGTHS = [
  "dnsssssssoussussssssssusssssssss6aacd68baa8b8666555666666678f6ca",
  "d67777777777777777777777878djde6f56565666577666567655677777fbeds",
  "kmkkmmmnmnnnnnonoomnonnnnlmnmnnomlkmmnnlnmmolmnnllmlnmnnkmmmnmmn",
  "qqkjmnmpqqqrrqopjlqrrqrollqqsrrrkoklmllnmmppooqnqrqqrrrrrsrrrrrq",
  "u",
].join("");

const END = 256;
const SHORTEST = 5;
const LONGEST = 30;

interface Code {
  /** Octets in the order of their codes. */
  readonly order: Uint16Array;
  /** The first code of each length, the number of codes, and the start of their octets. */
  readonly first: Uint32Array;
  readonly counts: Uint16Array;
  readonly places: Uint16Array;
}

function canonicalCode(): Code {
  const order = new Uint16Array(LENGTHS.length);
  const first = new Uint32Array(LONGEST + 1);
  const counts = new Uint16Array(LONGEST + 1);
  const places = new Uint16Array(LONGEST + 1);
  let place = 0;
  let code = 0;
  for (let length = SHORTEST; length <= LONGEST; length++) {
    code *= 2;
    first[length] = code;
    places[length] = place;
    for (let octet = 0; octet < LENGTHS.length; octet++) {
      if (Number.parseInt(LENGTHS.charAt(octet), 32) !== length) continue;
      order[place++] = octet;
      code++;
    }
    counts[length] = place - (places[length] as number);
  }
  return { order, first, counts, places };
}

const CODE = canonicalCode();

/** By leading octet: the bits of a code of at most eight, and its symbol; 0 if the code is longer. */
const SHORT_CODES = shortCodes();

function shortCodes(): Uint16Array {
  const table = new Uint16Array(256);
  for (let start = 0; start < table.length; start++)
    for (let bits = SHORTEST; bits <= 8 && table[start] === 0; bits++) {
      const offset = (start >> (8 - bits)) - (CODE.first[bits] as number);
      if (offset < 0 || offset >= (CODE.counts[bits] as number)) continue;
      table[start] = (bits << 8) | (CODE.order[(CODE.places[bits] as number) + offset] as number);
    }
  return table;
}

/** Maximum length of a decoded text of this many octets: a code has at least 5 bits. */
export function mostDecoded(length: number): number {
  return Math.floor((length * 8) / SHORTEST);
}

/** @returns `undefined` if the code or the padding is invalid (RFC 7541 section 5.2) */
export function decodeHuffman(octets: Uint8Array): string | undefined {
  const out = new Uint8Array(mostDecoded(octets.length));
  const end = decodeHuffmanInto(octets, 0, octets.length, out, 0);
  return end < 0 ? undefined : Buffer.from(out.buffer, 0, end).toString("latin1");
}

/**
 * Decodes the octets from `start` to `end` into `out` from `at` on, which must have room for {@link mostDecoded}.
 * @returns the end of the text in `out`, or -1 if the code or the padding is invalid
 */
export function decodeHuffmanInto(
  octets: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
): number {
  let next = start;
  let written = at;
  // The lowest `have` bits of `kept` are next; the bits above are consumed.
  let kept = 0;
  let have = 0;
  for (;;) {
    while (have <= 24 && next < end) {
      kept = (kept << 8) | (octets[next++] as number);
      have += 8;
    }
    // The input is extended with ones, like the padding.
    const beginning =
      have >= 8 ? (kept >>> (have - 8)) & 0xff : ((kept << (8 - have)) | (0xff >> have)) & 0xff;
    const short = SHORT_CODES[beginning] as number;
    if (short !== 0) {
      const bits = short >> 8;
      if (bits > have) break;
      out[written++] = short & 0xff;
      have -= bits;
      continue;
    }
    if (have < 8) break;
    // Codes of 10 to 30 bits; 25 of them are loaded, or all that are left.
    let code = 0;
    let bits = 0;
    let found = -1;
    while (found < 0) {
      if (have === 0) {
        if (next === end) return -1;
        kept = octets[next++] as number;
        have = 8;
      }
      have--;
      code = code * 2 + ((kept >>> have) & 1);
      bits++;
      if (bits < SHORTEST) continue;
      const offset = code - (CODE.first[bits] as number);
      if (offset >= 0 && offset < (CODE.counts[bits] as number))
        found = CODE.order[(CODE.places[bits] as number) + offset] as number;
      else if (bits === LONGEST) return -1;
    }
    if (found === END) return -1;
    out[written++] = found;
  }
  // The padding is the beginning of EOS, all ones, and less than an octet.
  const left = 2 ** have - 1;
  return have < 8 && (kept & left) === left ? written : -1;
}
