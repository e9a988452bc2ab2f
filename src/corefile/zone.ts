/** Zones in Corefiles: names, and networks that stand for reverse zones (docs/spec/coredns-behaviour.md#server-keys). */
import { domainToASCII } from "node:url";
import { Name } from "../dns/name.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";

/** Zones in lower-case presentation form with final dot, or the reason why the text is not a zone, in CoreDNS's words. */
export type ZoneReading =
  | { readonly zones: readonly string[]; readonly fault?: undefined }
  | { readonly zones?: undefined; readonly fault: string };

/** Reads a zone without scheme and port. A network that does not end at a label boundary becomes up to 128 zones. */
export function readZone(text: string): ZoneReading {
  const octets = Buffer.byteLength(text);
  if (octets > MAX_ZONE_OCTETS)
    return { fault: `specified zone is too long: ${octets} > ${MAX_ZONE_OCTETS}` };
  const network = parseNetwork(text);
  if (network !== undefined) {
    // CoreDNS refuses these, too: leading zero groups could not be distinguished from no network.
    if (text.startsWith(":") || (text.startsWith("0") && text.includes(":")))
      return { fault: `invalid CIDR ${text}` };
    return { zones: reverseZones(network) };
  }
  const name = Name.tryParse(escapeNonAscii(text));
  if (name === undefined) return { fault: `zone is not a valid domain name: ${text}` };
  return { zones: [name.toLowerCase().toString()] };
}

/** Why a valid zone looks like a mistake; `undefined` for ordinary zones. */
export function unusualZone(
  text: string,
): { message: string; suggestion?: string; note?: string } | undefined {
  if (parseNetwork(text) !== undefined) return undefined;
  if (parseIpAddress(text) !== undefined) {
    const reverse = text.includes(":") ? "" : `, for the reverse zone of an address the key '${text}/32'`;
    return {
      message: `${text} is taken for a domain name, not for an address`,
      note: `a key says which names are served; for the address to listen on there is the directive 'bind'${reverse}`,
    };
  }
  if (/^[\d.]+\/\d*$|^[\da-f:.]*:[\da-f:.]*\/\d*$/i.test(text)) {
    return { message: `${text} is read as a domain name because it is not a network`, note: NETWORK_NOTE };
  }
  if (!isAscii(text)) {
    const punycode = domainToASCII(text.replace(/\.$/, ""));
    return {
      message: "clients query internationalised names in punycode, so no query will match this one",
      ...(punycode !== "" && { suggestion: text.endsWith(".") ? `${punycode}.` : punycode }),
    };
  }
  if (text.startsWith("*.") || text === "*") {
    return {
      message:
        "a zone holds all names below it; one that begins with `*` holds only names that begin with `*`",
      ...(text.length > 2 && { suggestion: text.slice(2) }),
    };
  }
  const [character] = /[^\w\-./*\\]/.exec(text) ?? [];
  if (character === undefined) return undefined;
  const note = CHARACTER_NOTES.get(character);
  return {
    message: `the character '${character}' is part of the zone's name`,
    ...(note !== undefined && { note }),
  };
}

const MAX_ZONE_OCTETS = 255;

const NETWORK_NOTE =
  "a network is a whole address, a slash, and a prefix length up to 32 for IPv4 or 128 for IPv6";

const CHARACTER_NOTES: ReadonlyMap<string, string> = new Map([
  [":", "a port is a number after a single colon at the end: 'example.org:53'"],
  [
    ",",
    "several keys are separated by spaces, or by a comma at the end of each but the last: 'example.org, example.net'",
  ],
  [" ", "a quoted text, or the value of an environment variable, is one key even if it contains spaces"],
  ["{", "a brace needs a space before and after it"],
  ["}", "a brace needs a space before and after it"],
  ["(", "a snippet is declared by one word in parentheses alone: '(name) {'"],
  [")", "a snippet is declared by one word in parentheses alone: '(name) {'"],
]);

interface Network {
  /** 4 or 16. */
  readonly octets: Uint8Array;
  readonly prefixLength: number;
}

function parseNetwork(text: string): Network | undefined {
  const slash = text.indexOf("/");
  if (slash === -1) return undefined;
  const octets = parseIpAddress(text.slice(0, slash));
  const digits = text.slice(slash + 1);
  if (octets === undefined || !/^\d{1,3}$/.test(digits)) return undefined;
  const prefixLength = Number(digits);
  return prefixLength <= octets.length * 8 ? { octets, prefixLength } : undefined;
}

/**
 * The reverse zones of a network. A label stands for 8 bits of an IPv4 address (RFC 1035 section 3.5) and for 4 of an IPv6 address
 * (RFC 3596 section 2.5). A prefix that ends within a label becomes one zone for each possible value.
 */
function reverseZones({ octets, prefixLength }: Network): string[] {
  const isIpv4 = octets.length === 4;
  const bitsPerLabel = isIpv4 ? 8 : 4;
  const digits = isIpv4 ? [...octets] : [...octets].flatMap((octet) => [octet >>> 4, octet & 0xf]);
  const labelCount = Math.ceil(prefixLength / bitsPerLabel);
  const suffix = isIpv4 ? "in-addr.arpa." : "ip6.arpa.";
  const zoneFor = (last: readonly number[], fixed: number): string => {
    const labels = [...digits.slice(0, fixed), ...last]
      .reverse()
      .map((digit) => digit.toString(isIpv4 ? 10 : 16));
    return [...labels, suffix].join(".");
  };

  const openBits = labelCount * bitsPerLabel - prefixLength;
  if (openBits === 0) return [zoneFor([], labelCount)];
  const size = 2 ** openBits;
  const first = Math.floor((digits[labelCount - 1] ?? 0) / size) * size;
  return Array.from({ length: size }, (_, index) => zoneFor([first + index], labelCount - 1));
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) > 0x7f) return false;
  return true;
}

/** UTF-8 octets as `\ddd`, as such a name appears in messages and in zone text. */
function escapeNonAscii(text: string): string {
  if (isAscii(text)) return text;
  let escaped = "";
  for (const octet of Buffer.from(text)) {
    escaped += octet < 0x80 ? String.fromCharCode(octet) : `\\${octet.toString().padStart(3, "0")}`;
  }
  return escaped;
}
