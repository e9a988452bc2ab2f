/** Random numbers that come out the same in every run, so that all servers get the same queries. */

/**
 * Marsaglia's xorshift with 32 bits of state ("Xorshift RNGs", 2003; the triple 13, 17, 5), scrambled by a multiplication.
 * Good enough to draw names and arrival times; not for secrets.
 * @param seed any whole number but 0
 * @returns a function that gives numbers from 0 up to, but not including, 1
 */
export function seededRandom(seed: number): () => number {
  if (!Number.isSafeInteger(seed) || (seed | 0) === 0)
    throw new RangeError(`not a seed: ${seed}; it is a whole number whose lower 32 bits are not all 0`);
  let state = seed | 0;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (Math.imul(state, 0x9e3779b1) >>> 0) / 2 ** 32;
  };
}
