/** Splits text into lines as it arrives, in bounded memory. */

export interface NumberedLine {
  readonly text: string;
  /** From 1. */
  readonly number: number;
  /** Whether the line end was present. */
  readonly isWhole: boolean;
}

/** A line longer than any valid one. */
export class TooLongLine extends Error {
  override readonly name = "TooLongLine";
  readonly number: number;

  constructor(number: number) {
    super(`line ${number} is too long`);
    this.number = number;
  }
}

/** In bytes. A line with facts holds a Corefile and every upstream. */
const LONGEST = 16 * 1024 * 1024;
const LINE_FEED = 10;

/**
 * The lines of each chunk that contains line ends.
 * @throws TooLongLine
 */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<readonly NumberedLine[]> {
  let begun: Buffer[] = [];
  let octets = 0;
  let number = 0;
  for await (const chunk of chunks) {
    const buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const lines: NumberedLine[] = [];
    let start = 0;
    for (let end = buffer.indexOf(LINE_FEED); end >= 0; end = buffer.indexOf(LINE_FEED, start)) {
      const rest = buffer.toString("utf8", start, end);
      const text =
        octets === 0 ? rest : Buffer.concat([...begun, buffer.subarray(start, end)]).toString("utf8");
      lines.push({ text, number: ++number, isWhole: true });
      begun = [];
      octets = 0;
      start = end + 1;
    }
    if (start < buffer.length) {
      begun.push(buffer.subarray(start));
      octets += buffer.length - start;
      if (octets > LONGEST) throw new TooLongLine(number + 1);
    }
    if (lines.length > 0) yield lines;
  }
  if (octets > 0) yield [{ text: Buffer.concat(begun).toString("utf8"), number: number + 1, isWhole: false }];
}
