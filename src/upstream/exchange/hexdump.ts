/**
 * Octets in the form of packet analysers, 16 per line after their offset; the last line is the total length
 * (src/plugins/debug/README.md).
 */
export function hexdump(bytes: Uint8Array): string[] {
  const lines: string[] = [];
  for (let start = 0; start < bytes.length; start += 16) {
    const octets = Array.from(bytes.subarray(start, start + 16), (octet) =>
      octet.toString(16).padStart(2, "0"),
    );
    lines.push(`${offset(start)} ${octets.join(" ")}`);
  }
  lines.push(offset(bytes.length));
  return lines;
}

function offset(at: number): string {
  return at.toString(16).padStart(6, "0");
}
