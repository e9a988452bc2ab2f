/** The answers of the soak's upstream: existing names, answers of 64 KiB, and NXDOMAIN for everything else. */
import { Name } from "../../src/dns/name.ts";
import { EXTERNAL_ZONE } from "../names.ts";
import { LARGE_ZONE } from "./flood-queries.ts";

export class UpstreamCounts {
  /** Queries for names in use. */
  inUse = 0;
}

const HEADER = 12;
const IN_USE = wireOf(EXTERNAL_ZONE);
const LARGE = wireOf(LARGE_ZONE);
const NXDOMAIN = 3;
const TC = 0x02;

/** An address for the name that was asked for, for an hour. */
const ADDRESS = Buffer.from("c00c 0001 0001 00000e10 0004 c000020a".replaceAll(" ", ""), "hex");
/** The SOA of the root, with which NXDOMAIN is kept for five minutes. */
const SOA = Buffer.from(
  `00 0006 0001 0000012c 0016 00 00 ${"0000012c".repeat(5)}`.replaceAll(" ", ""),
  "hex",
);
/** A text of 255 octets. */
const TEXT = Buffer.concat([
  Buffer.from("c00c 0010 0001 00000e10 0100 ff".replaceAll(" ", ""), "hex"),
  Buffer.alloc(255, "x"),
]);
const MOST = 0xffff;

/** @returns undefined for what is no query */
export function replyTo(
  query: Uint8Array,
  transport: "udp" | "tcp",
  counts: UpstreamCounts,
): Buffer | undefined {
  let end = HEADER;
  while ((query[end] ?? 0) !== 0) end += (query[end] ?? 0) + 1;
  end++;
  if (query.length < end + 4) return undefined;
  const head = Buffer.from(query.subarray(0, end + 4));
  head[2] = 0x80 | (head[2] ?? 0);
  head.fill(0, 6, HEADER);
  if (endsWith(query, end, IN_USE)) {
    counts.inUse++;
    head.writeUInt16BE(1, 6);
    return Buffer.concat([head, ADDRESS]);
  }
  if (endsWith(query, end, LARGE)) {
    if (transport === "udp") {
      head[2] |= TC;
      return head;
    }
    const count = Math.floor((MOST - head.length) / TEXT.length);
    head.writeUInt16BE(count, 6);
    return Buffer.concat([head, ...Array.from({ length: count }, () => TEXT)]);
  }
  head[3] = NXDOMAIN;
  head.writeUInt16BE(1, 8);
  return Buffer.concat([head, SOA]);
}

function wireOf(zone: string): Buffer {
  return Buffer.from(Name.parse(zone).wire);
}

/** @param end behind the name's last octet */
function endsWith(query: Uint8Array, end: number, zone: Buffer): boolean {
  const start = end - zone.length;
  return start >= HEADER && zone.compare(query, start, end) === 0;
}
