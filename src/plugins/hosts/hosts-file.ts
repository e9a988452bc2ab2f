import { setImmediate as nextTurn } from "node:timers/promises";
import { isIpv4Mapped, parseScopedIpAddress } from "../../lib/net/ip-address.ts";

export interface HostsLine {
  /** 4 or 16 octets; an IPv4-mapped address is converted to its IPv4 address. */
  readonly octets: Uint8Array;
  /** As written, at least one name. */
  readonly names: readonly string[];
}

/** `IP NAME...  # comment`; `undefined` for a line without an entry, or with an invalid address. */
export function parseHostsLine(line: string): HostsLine | undefined {
  const comment = line.indexOf("#");
  const [address, ...names] = (comment < 0 ? line : line.slice(0, comment)).trim().split(/\s+/);
  if (address === undefined || names.length === 0) return undefined;
  const octets = parseScopedIpAddress(address)?.octets;
  if (octets === undefined) return undefined;
  return { octets: octets.length === 16 && isIpv4Mapped(octets) ? octets.subarray(12) : octets, names };
}

/** Blocklists have a million lines: queries are answered between portions. */
const LINES_PER_TURN = 2_000;

/** Passes each entry of a file to `take`, in order. */
export async function readHostsFile(content: Uint8Array, take: (line: HostsLine) => void): Promise<void> {
  // Names are ASCII; higher bytes are never part of one, whatever the encoding.
  const text = Buffer.from(content.buffer, content.byteOffset, content.length).toString("latin1");
  let start = 0;
  for (let count = 1; start < text.length; count++) {
    const newline = text.indexOf("\n", start);
    const end = newline < 0 ? text.length : newline;
    const line = parseHostsLine(text.slice(start, end));
    if (line !== undefined) take(line);
    start = end + 1;
    if (count % LINES_PER_TURN === 0) await nextTurn();
  }
}
