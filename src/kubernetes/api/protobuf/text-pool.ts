/**
 * Octets -> texts, of which those that came twice lately are handed out again: names of zones and labels, kinds and protocols come a
 * hundred thousand times. Which is kept is a matter of chance; nothing but memory and time depends on it. What came once is not kept: addresses
 * come once each, and would go to V8's old generation from here.
 */
export class TextPool {
  readonly #kept: string[] = new Array<string>(SIZE).fill("");
  /** The hash of what came last, for each place. */
  readonly #last = new Int32Array(SIZE);

  /** @param octets UTF-8 */
  read(octets: Buffer, start: number, end: number): string {
    const length = end - start;
    if (length === 0) return "";
    if (length > LONGEST) return octets.toString("utf8", start, end);
    // FNV-1a, and whether all is ASCII.
    let hash = 0x811c_9dc5;
    let all = 0;
    for (let at = start; at < end; at++) {
      const octet = octets[at] ?? 0;
      hash = Math.imul(hash ^ octet, 0x0100_0193);
      all |= octet;
    }
    if (all > 0x7f) return octets.toString("utf8", start, end);
    const place = (hash ^ (hash >>> 16)) & (SIZE - 1);
    const kept = this.#kept[place] ?? "";
    if (kept.length === length && isText(kept, octets, start)) return kept;
    const text = octets.toString("latin1", start, end);
    if (this.#last[place] === hash) this.#kept[place] = text;
    else this.#last[place] = hash;
    return text;
  }
}

const SIZE = 1024;
/** What is longer hardly ever comes twice. */
const LONGEST = 64;

function isText(text: string, octets: Buffer, start: number): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) !== octets[start + at]) return false;
  return true;
}
