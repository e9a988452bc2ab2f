/**
 * Corrupt memory: a chain longer than the number of links, a block without a length. It costs the stored data, and
 * never the process: every walk counts its steps, and throws this beyond the size of an intact structure.
 */
export class SlabFault extends Error {
  override readonly name = "SlabFault";
}
