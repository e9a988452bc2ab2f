/** Messages as 32-bit words of the machine, for answers that are repeated. */

const HASH_PRIME = 0x9e3779b1;
/** The hash of an empty slot, and of a query that is never remembered. No other query has it. */
export const NO_HASH = 0;
/** The id, in the first word of a message as the machine has it. */
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
export const ID_BITS = IS_LITTLE_ENDIAN ? 0xffff : 0xffff0000 | 0;

/** Hashes all octets except the id. Each step rotates the bits, as a product carries them only upwards. */
export function hashOf(message: Int32Array, at: number, length: number, seed: number): number {
  const last = at + (length >> 2);
  let hash = Math.imul(seed ^ length ^ ((message[at] as number) & ~ID_BITS), HASH_PRIME);
  for (let word = at + 1; word < last; word++)
    hash = Math.imul(((hash << 5) | (hash >>> 27)) ^ (message[word] as number), HASH_PRIME);
  hash = Math.imul(
    ((hash << 5) | (hash >>> 27)) ^ ((message[last] as number) & restBits(length)),
    HASH_PRIME,
  );
  hash = Math.imul(hash ^ (hash >>> 15), HASH_PRIME);
  hash ^= hash >>> 13;
  return hash === NO_HASH ? 1 : hash;
}

/** The mask of the message's octets in its last, incomplete word. */
export function restBits(length: number): number {
  const rest = 8 * (length & 3);
  const low = (1 << (IS_LITTLE_ENDIAN ? rest : 32 - rest)) - 1;
  return IS_LITTLE_ENDIAN ? low : rest === 0 ? 0 : ~low;
}
