/** The TO words of `forward`: what each means, and the addresses that they come to in the end (CoreDNS facts 2.53). */
import { Name } from "../../dns/index.ts";
import { readTextFile } from "../../lib/bounded-file.ts";
import { parseHostPort, SetupError, type Value, ValueProblem } from "../../plugin/index.ts";
import { type UpstreamAddress, upstreamAddress } from "../../upstream/address.ts";
import type { HostLookup } from "../../upstream/host-lookup.ts";
import { DNS_PORT, parseNameservers } from "../../upstream/resolv-conf.ts";

export type Target =
  | { readonly kind: "address"; readonly address: UpstreamAddress }
  /** A file like /etc/resolv.conf or the name of a host: only the machine can tell which. */
  | { readonly kind: "file or host"; readonly text: string };

/** How many TO words may stand in one directive; files and host names may stand for more addresses. */
export const MAX_TARGETS = 15;

export const target: Value<Target> = {
  expected: "an IP address with or without port, a file like /etc/resolv.conf, or a host name",
  parse(word) {
    const [, scheme, rest = word] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(word) ?? [];
    const problem = schemeProblem(scheme?.toLowerCase(), rest);
    if (problem !== undefined) return problem;
    const place = parseHostPort(rest, DNS_PORT);
    const address = place === undefined ? undefined : upstreamAddress(place.host, place.port);
    if (address?.port === 0) return new ValueProblem(`port 0 is no place to send queries to: '${word}'`);
    if (address !== undefined) return { kind: "address", address };
    // Digits and dots are a mistyped address, not a name that somebody could look up.
    if (rest === "" || /^[\d.]+(:\d*)?$/.test(rest)) return new ValueProblem(notATarget(word));
    return { kind: "file or host", text: rest };
  },
};

/**
 * The addresses that the words stand for, each once, in their order.
 * @throws SetupError
 */
export async function resolveTargets(
  targets: readonly Target[],
  lookup: HostLookup,
): Promise<UpstreamAddress[]> {
  const resolved = await Promise.all(targets.map((word) => addressesOf(word, lookup)));
  const addresses = new Map<string, UpstreamAddress>();
  for (const address of resolved.flat()) if (!addresses.has(address.key)) addresses.set(address.key, address);
  if (addresses.size === 0) {
    const files = targets.flatMap((word) => (word.kind === "address" ? [] : word.text)).join(", ");
    throw new SetupError(`no valid upstream addresses found: no nameserver line in ${files}`);
  }
  return [...addresses.values()];
}

/** Words with a scheme are refused here; `tls` and `https` get their own meaning once there are such upstreams. */
function schemeProblem(scheme: string | undefined, rest: string): ValueProblem | undefined {
  switch (scheme) {
    case undefined:
    case "dns":
      return undefined;
    case "tls":
    case "https":
      return new ValueProblem(
        `${scheme}:// upstreams are not in this version yet: use dns://${hostOf(rest)}`,
      );
    default:
      return new ValueProblem(`'${scheme}' is not supported as a destination protocol in forward: ${rest}`);
  }
}

/** The host alone: a port of TLS or HTTPS does not answer plain DNS. */
function hostOf(rest: string): string {
  const withoutServerName = rest.replace(/%[^:\]]*(?=:\d+$|$)/, "");
  return parseHostPort(withoutServerName, DNS_PORT)?.host ?? rest;
}

async function addressesOf(word: Target, lookup: HostLookup): Promise<UpstreamAddress[]> {
  if (word.kind === "address") return [word.address];
  const { text } = word;
  let problem: string;
  let asFile = "";
  try {
    return parseNameservers(await readTextFile(text));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    problem = error.message;
    // Who names a file that is there means the file, and would look for the fault in DNS.
    if (!("code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))) asFile = ` (${problem})`;
  }
  const [, host = text, port = String(DNS_PORT)] = /^([^:]*):(\d{1,5})$/.exec(text) ?? [];
  const name = hostName(host);
  if (name === undefined || Number(port) < 1 || Number(port) > 0xffff)
    throw new SetupError(`${notATarget(text)} (${problem})`);
  let found: string[];
  try {
    found = await lookup(name);
  } catch (error) {
    throw new SetupError(
      `failed to resolve "${text}": ${error instanceof Error ? error.message : String(error)}${asFile}`,
    );
  }
  return found.flatMap((ip) => upstreamAddress(ip, Number(port)) ?? []);
}

/** Letters, digits, hyphens and underscores: what a path with a slash in it is not. */
function hostName(text: string): Name | undefined {
  return /^[A-Za-z0-9_]([A-Za-z0-9_-]*\.?)*$/.test(text) && !text.includes("..")
    ? Name.tryParse(text)
    : undefined;
}

function notATarget(word: string): string {
  return `not an IP address, file, or valid domain: "${word}"`;
}
