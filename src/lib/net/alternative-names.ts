/** Subject alternative names of certificates, as Node prints them (RFC 5280 section 4.2.1.6). */
import { formatIpAddress, parseIpAddress } from "./ip-address.ts";

/**
 * The names of a certificate, without their kinds: domain names, mail addresses, URIs, and IP addresses in their
 * usual form.
 * @param text `X509Certificate.subjectAltName`, such as `DNS:a.example, IP Address:192.0.2.1`; unusual names are
 * quoted
 */
export function alternativeNames(text: string): string[] {
  const found: string[] = [];
  for (const [, kind, value = ""] of text.matchAll(/([^:,]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:, |$)/g)) {
    const name = value.startsWith('"') ? quoted(value) : value;
    if (name === undefined) continue;
    if (kind === "IP Address") {
      const octets = parseIpAddress(name);
      if (octets !== undefined) found.push(formatIpAddress(octets));
    } else if (KINDS.has(kind ?? "")) found.push(name);
  }
  return found;
}

const KINDS: ReadonlySet<string> = new Set(["DNS", "email", "URI"]);

function quoted(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
