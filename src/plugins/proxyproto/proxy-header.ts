/** The headers of the PROXY protocol, versions 1 and 2 (https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt). */
import { formatIpAddress, parseIpAddress } from "../../lib/net/ip-address.ts";
import { GreetingError } from "../../plugin/contract/greeting.ts";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";

/** A client behind a proxy, and further data from the proxy. */
export class ProxiedClient extends FixedEndpoint {
  readonly proxyExtensions: Uint8Array;

  constructor({ address, port, octets }: FixedEndpoint, extensions: Uint8Array) {
    super(address, port, octets);
    this.proxyExtensions = extensions;
  }
}

export interface ProxyHeader {
  /** Octets of the header, its extensions included. */
  readonly length: number;
  /** "local" if the proxy itself is the sender, "unknown" without usable addresses. */
  readonly kind: "tcp" | "udp" | "local" | "unknown";
  readonly source: FixedEndpoint | undefined;
  readonly destination: FixedEndpoint | undefined;
}

/** There is no header. */
export const ABSENT = "absent";
/** The bytes may become a header when more arrive. */
export const INCOMPLETE = "incomplete";

const SIGNATURE = Uint8Array.of(0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a);
const TEXT_START = Buffer.from("PROXY ");
const FIXED_OCTETS = 16;
/** Bound for version 1, line ending included. */
const MAX_TEXT_OCTETS = 107;

export function beginsWithText(octets: Uint8Array): boolean {
  return matches(octets, TEXT_START) === TEXT_START.length;
}

/**
 * @param keepsExtensions whether to store the bytes after the addresses in {@link ProxyHeader.source} @throws
 * GreetingError for a malformed header
 */
export function readHeader(
  octets: Uint8Array,
  keepsExtensions = false,
): ProxyHeader | typeof ABSENT | typeof INCOMPLETE {
  const binary = matches(octets, SIGNATURE);
  if (binary === SIGNATURE.length) return readBinary(octets, keepsExtensions);
  const text = matches(octets, TEXT_START);
  if (text === TEXT_START.length) return readText(octets);
  return binary === octets.length || text === octets.length ? INCOMPLETE : ABSENT;
}

/** How many of the first octets equal those of `start`. */
function matches(octets: Uint8Array, start: Uint8Array): number {
  let count = 0;
  while (count < start.length && count < octets.length && octets[count] === start[count]) count++;
  return count;
}

function readBinary(octets: Uint8Array, keepsExtensions: boolean): ProxyHeader | typeof INCOMPLETE {
  if (octets.length < FIXED_OCTETS) {
    const version = octets[12];
    if (version !== undefined) checkVersion(version);
    return INCOMPLETE;
  }
  const command = checkVersion(octets[12] ?? 0);
  const family = (octets[13] ?? 0) >>> 4;
  const protocol = (octets[13] ?? 0) & 15;
  const length = FIXED_OCTETS + (((octets[14] ?? 0) << 8) | (octets[15] ?? 0));
  if (octets.length < length) return INCOMPLETE;
  const none = { length, source: undefined, destination: undefined };
  if (command === LOCAL) return { ...none, kind: "local" };
  const size = ADDRESS_OCTETS[family];
  if (size === undefined || (protocol !== 1 && protocol !== 2)) return { ...none, kind: "unknown" };
  const portsAt = FIXED_OCTETS + 2 * size;
  if (length < portsAt + 4)
    throw new GreetingError(`header of ${length} octets has no room for its addresses`);
  const endpoint = (at: number, portAt: number): FixedEndpoint => {
    const address = octets.slice(at, at + size);
    return new FixedEndpoint(
      formatIpAddress(address),
      ((octets[portAt] ?? 0) << 8) | (octets[portAt + 1] ?? 0),
      address,
    );
  };
  const source = endpoint(FIXED_OCTETS, portsAt);
  const hasExtensions = keepsExtensions && length > portsAt + 4;
  return {
    length,
    kind: protocol === 1 ? "tcp" : "udp",
    source: hasExtensions ? new ProxiedClient(source, octets.slice(portsAt + 4, length)) : source,
    destination: endpoint(FIXED_OCTETS + size, portsAt + 2),
  };
}

const LOCAL = 0;
const PROXY = 1;
/** By address family. */
const ADDRESS_OCTETS: readonly (number | undefined)[] = [undefined, 4, 16];

/** @returns the command */
function checkVersion(octet: number): number {
  const command = octet & 15;
  if (octet >>> 4 !== 2 || (command !== LOCAL && command !== PROXY))
    throw new GreetingError(`unknown version or command: 0x${octet.toString(16).padStart(2, "0")}`);
  return command;
}

function readText(octets: Uint8Array): ProxyHeader | typeof INCOMPLETE {
  const end = Buffer.from(octets.buffer, octets.byteOffset, Math.min(octets.length, MAX_TEXT_OCTETS)).indexOf(
    "\r\n",
  );
  if (end < 0) {
    if (octets.length < MAX_TEXT_OCTETS) return INCOMPLETE;
    throw new GreetingError(`header of version 1 without an end within ${MAX_TEXT_OCTETS} octets`);
  }
  const length = end + 2;
  const line = Buffer.from(octets.buffer, octets.byteOffset, end).toString("latin1");
  const [, protocol, source, destination, sourcePort, destinationPort, ...more] = line.split(" ");
  if (protocol === "UNKNOWN") return { length, kind: "unknown", source: undefined, destination: undefined };
  const size = protocol === "TCP4" ? 4 : protocol === "TCP6" ? 16 : undefined;
  if (size === undefined || more.length > 0) throw new GreetingError(`malformed header: "${line}"`);
  return {
    length,
    kind: "tcp",
    source: readEndpoint(source, sourcePort, size, line),
    destination: readEndpoint(destination, destinationPort, size, line),
  };
}

function readEndpoint(
  address: string | undefined,
  port: string | undefined,
  size: number,
  line: string,
): FixedEndpoint {
  const octets = parseIpAddress(address ?? "");
  if (octets?.length !== size || !/^\d{1,5}$/.test(port ?? "") || Number(port) > 0xffff)
    throw new GreetingError(`malformed header: "${line}"`);
  return new FixedEndpoint(formatIpAddress(octets), Number(port), octets);
}
