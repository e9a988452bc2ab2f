/**
 * Memory that is not as it was left: a chain longer than there are links, a block without a length. It costs what is stored there, and never the process:
 * every walk counts its steps, and throws this where a whole structure would have ended.
 */
export class SlabFault extends Error {
  override readonly name = "SlabFault";
}
