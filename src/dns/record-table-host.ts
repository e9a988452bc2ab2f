/** The text of HINFO records (RFC 1035 section 3.3.2), in the forms that CoreDNS accepts. */
import { MAX_STRING_OCTETS } from "./octet-fields.ts";
import { type PresentationToken, type RdataScanner, unescapeText } from "./rdata-scanner.ts";

/** The data of an HINFO record. */
export interface HostInformation {
  readonly cpu: Uint8Array;
  readonly os: Uint8Array;
}

/** A single text is split at its first space, or followed by an empty one. Of three or more, the second gets all the rest. */
export function parseHostInformation(scanner: RdataScanner): HostInformation {
  const first = scanner.token("a text");
  if (!scanner.hasMore) {
    const [cpu = "", ...os] = first.text.split(/[\t\n\v\f\r ]+/).filter((word) => word !== "");
    return { cpu: octetsOf(scanner, cpu, first), os: octetsOf(scanner, os.join(" "), first) };
  }
  const second = scanner.token("a text");
  const words = [second.text];
  while (scanner.hasMore) words.push(scanner.word("a text"));
  return { cpu: octetsOf(scanner, first.text, first), os: octetsOf(scanner, words.join(" "), second) };
}

function octetsOf(scanner: RdataScanner, text: string, token: PresentationToken): Uint8Array {
  const octets = unescapeText(text);
  if (octets === undefined) throw scanner.fail(`a text: bad escape in "${text}"`, token);
  if (octets.length > MAX_STRING_OCTETS) throw scanner.fail("text longer than 255 octets; split it", token);
  return octets;
}
