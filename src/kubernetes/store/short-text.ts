/** Texts among octets. */

/** Octets of that many are read one by one. */
const SHORT = 16;

/** The text in UTF-8 from `start` to `end`. A few octets are read sooner than a call into the machine's own code returns. */
export function readText(octets: Buffer, start: number, end: number): string {
  if (end - start > SHORT) return octets.toString("utf8", start, end);
  let text = "";
  for (let at = start; at < end; at++) {
    const octet = octets[at] ?? 0;
    if (octet >= 0x80) return octets.toString("utf8", start, end);
    text += String.fromCharCode(octet);
  }
  return text;
}
