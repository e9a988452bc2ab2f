import type { Token } from "../../corefile/tokens.ts";
import { formatIpAddress, parseScopedIpAddress } from "../../lib/net/ip-address.ts";
import type { Machine } from "../../plugin/contract/site.ts";

/** One `bind` directive. */
export interface BindLine {
  readonly addresses: readonly Token[];
  readonly except: readonly { readonly addresses: readonly Token[] }[];
}

/**
 * The distinct addresses of all lines, spelled as written. `except` removes addresses from its own line only. @param
 * reportInvalid called with each word that is neither an interface nor an address. @returns undefined if there was
 * such a word.
 */
export function listenHosts(
  lines: readonly BindLine[],
  machine: Machine,
  reportInvalid: (token: Token) => void,
): string[] | undefined {
  const hosts = new Map<string, string>();
  let valid = true;

  function addressesOf(tokens: readonly Token[]): string[] {
    return tokens.flatMap((token) => {
      const addresses = resolve(token.text, machine);
      if (addresses === undefined) {
        reportInvalid(token);
        valid = false;
      }
      return addresses ?? [];
    });
  }

  for (const { addresses, except } of lines) {
    const excepted = new Set(except.flatMap((line) => addressesOf(line.addresses)).map(canonical));
    for (const address of addressesOf(addresses)) {
      const key = canonical(address);
      if (excepted.has(key) || excepted.has(withoutZone(key)) || hosts.has(key)) continue;
      hosts.set(key, address);
    }
  }
  return valid ? [...hosts.values()] : undefined;
}

/** Interfaces take precedence over addresses: an interface may have any name. */
function resolve(word: string, machine: Machine): readonly string[] | undefined {
  return machine.interfaceAddresses(word) ?? (parseScopedIpAddress(word) === undefined ? undefined : [word]);
}

/** The canonical spelling of an address. */
function canonical(address: string): string {
  const parsed = parseScopedIpAddress(address);
  if (parsed === undefined) return address;
  const text = formatIpAddress(parsed.octets);
  return parsed.zone === undefined ? text : `${text}%${parsed.zone}`;
}

function withoutZone(address: string): string {
  const percent = address.indexOf("%");
  return percent < 0 ? address : address.slice(0, percent);
}
