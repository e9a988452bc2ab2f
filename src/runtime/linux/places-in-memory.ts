/** Memory addresses as C has them, for structures that we fill in as words. */
import type { Libc } from "./libc.ts";

/**
 * The addresses of items `stride` octets apart in a buffer, from its start: two words each, the lower first. The
 * buffer has to stay reachable: {@link Libc.addressOf}.
 */
export function placesInMemory(
  libc: Libc,
  octets: Uint8Array,
  stride: number,
  count: number,
): Uint32Array<ArrayBuffer> {
  const start = libc.addressOf(octets);
  return Uint32Array.from({ length: 2 * count }, (_, word) => {
    const address = start + (word >> 1) * stride;
    return word % 2 === 0 ? address % 2 ** 32 : Math.floor(address / 2 ** 32);
  });
}
