/** The Huffman code of HTTP header fields (RFC 7541 appendix B), which QPACK shares: for reading alone. */

/**
 * Bits of the code of each octet, and of the end (EOS), a digit of base 32 each. The code is canonical: codes of one length follow each other
 * in the order of their octets, and shorter ones come first.
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
  /** The first code of each length, how many there are, and where their octets begin. */
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

/** @returns `undefined` where the octets are no such code, or do not end as they must (RFC 7541 section 5.2) */
export function decodeHuffman(octets: Uint8Array): string | undefined {
  // A code has 5 bits at the least.
  const out = new Uint8Array(Math.floor((octets.length * 8) / SHORTEST));
  let written = 0;
  let code = 0;
  let bits = 0;
  for (const octet of octets) {
    for (let bit = 7; bit >= 0; bit--) {
      code = code * 2 + ((octet >> bit) & 1);
      bits++;
      if (bits < SHORTEST) continue;
      const offset = code - (CODE.first[bits] as number);
      if (offset >= 0 && offset < (CODE.counts[bits] as number)) {
        const found = CODE.order[(CODE.places[bits] as number) + offset] as number;
        if (found === END) return undefined;
        out[written++] = found;
        code = 0;
        bits = 0;
      } else if (bits === LONGEST) return undefined;
    }
  }
  // What is left is the beginning of EOS, all ones, and less than an octet.
  if (bits > 7 || code !== 2 ** bits - 1) return undefined;
  return Buffer.from(out.buffer, 0, written).toString("latin1");
}
