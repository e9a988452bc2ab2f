/** The TO words of `forward` and `grpc`: their meaning, and their addresses (src/plugins/forward/README.md). */

import { Name } from "../dns/index.ts";
import { readTextFile } from "../lib/files/bounded-file.ts";
import { fileFault } from "../lib/files/file-fault.ts";
import { messageOf } from "../lib/text/message-of.ts";
import { nearestWord } from "../lib/text/nearest-word.ts";
import { parseHostPort, type Value, ValueProblem } from "../plugin/config/values.ts";
import { SetupError } from "../plugin/contract/define-plugin.ts";
import { socketAddress, splitServerName, type UpstreamAddress, upstreamAddress } from "./config/address.ts";
import { DNS_PORT, parseNameservers } from "./config/resolv-conf.ts";
import type { HostLookup } from "./host-lookup.ts";

export type TargetScheme = "dns" | "tls" | "https" | "quic" | "grpc";

interface TargetWay {
  readonly scheme: TargetScheme;
  /** `tls://9.9.9.9%dns.quad9.net`: the name in the certificate of this upstream. */
  readonly serverName: string | undefined;
  /** Only for `https://`. */
  readonly path: string;
}

export type Target = TargetWay &
  (
    | { readonly kind: "address"; readonly address: UpstreamAddress }
    /** A file like /etc/resolv.conf or a host name: only the machine can decide which. */
    | { readonly kind: "file or host"; readonly text: string }
  );

/** A server to query. */
export interface Place extends TargetWay {
  readonly address: UpstreamAddress;
  /** The host of HTTP requests. */
  readonly authority: string;
}

/** Maximum TO words of one directive; files and host names may stand for more addresses. */
export const MAX_TARGETS = 15;
/** CoreDNS's path, as in the examples of RFC 8484. */
const DEFAULT_PATH = "/dns-query";

const PORTS: Readonly<Record<TargetScheme, number>> = {
  dns: DNS_PORT,
  tls: 853,
  https: 443,
  quic: 853,
  grpc: 443,
};

/** Schemes of other programs, and our names for them, the best match first. */
const SYNONYMS: Readonly<Record<string, readonly TargetScheme[]>> = {
  tcp: ["dns"],
  udp: ["dns"],
  dot: ["tls"],
  doh: ["https"],
  http: ["https"],
  https3: ["https"],
  h3: ["https"],
  doq: ["quic"],
};

/** A user who writes one of these must not end up with plain text. */
const ENCRYPTED: ReadonlySet<string> = new Set(["tls", "dot", "https", "doh", "https3", "h3", "quic", "doq"]);

/** The targets that a plugin supports. Words without a scheme have `dns`. */
export interface TargetRules {
  readonly plugin: string;
  readonly schemes: readonly TargetScheme[];
  /** The scheme of `unix://PATH`; without it there are no such targets. */
  readonly sockets?: TargetScheme;
  /** The option that encrypts if no scheme does: the remedy for `tls://` and the like. */
  readonly encryptedBy?: string;
}

export function target({ plugin, schemes, sockets, encryptedBy }: TargetRules): Value<Target> {
  const supported = `one of ${schemes.map((scheme) => `${scheme}://`).join(", ")}`;
  return {
    expected: "an IP address with or without port, a file like /etc/resolv.conf, or a host name",
    parse(word) {
      const [, prefix, rest = word] = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(word) ?? [];
      const named = prefix?.toLowerCase() ?? "dns";
      if (named === "unix" && sockets !== undefined) {
        const way = { scheme: sockets, serverName: undefined, path: DEFAULT_PATH };
        return rest === ""
          ? new ValueProblem(notATarget(word))
          : { ...way, kind: "address", address: socketAddress(rest) };
      }
      const scheme = schemes.find((known) => known === named);
      if (scheme === undefined)
        return new ValueProblem(
          `'${named}' is not supported as a destination protocol in ${plugin}: ${rest}`,
          likelyScheme(named, schemes, rest),
          (ENCRYPTED.has(named) ? encryptedBy : undefined) ?? supported,
        );
      // A user who asks for encryption is never offered a form without it.
      const expected = scheme === "dns" ? undefined : `an IP address or a host name after ${scheme}://`;
      const { text, serverName, path } = partsOf(scheme, rest);
      const place = parseHostPort(text, PORTS[scheme]);
      const address = place === undefined ? undefined : upstreamAddress(place.host, place.port);
      if (address?.port === 0)
        return new ValueProblem(`port 0 cannot be queried: '${word}'`, undefined, "a port from 1 to 65535");
      if (path !== undefined && !/^\/[\x21-\x7e]*$/.test(path))
        return new ValueProblem(
          `'${path}' is not a path of an HTTPS upstream: '${word}'`,
          undefined,
          "a path such as /dns-query, without spaces",
        );
      const way = { scheme, serverName, path: path ?? DEFAULT_PATH } as const;
      if (address !== undefined) return { ...way, kind: "address", address };
      // Digits and dots are a mistyped address, not a name to look up.
      if (text === "" || /^[\d.]+(:\d*)?$/.test(text))
        return new ValueProblem(notATarget(word), undefined, expected);
      if (isPlaceholder(text)) return new ValueProblem(notATarget(word), undefined, PLACEHOLDER_REMEDY);
      const slashes = schemes.find((known) => new RegExp(`^${known}:/?(?!/|\\d+$)`, "i").test(text));
      if (slashes !== undefined)
        return new ValueProblem(
          notATarget(word),
          withSlashes(text, slashes),
          `${slashes}:// with two slashes`,
        );
      return { ...way, kind: "file or host", text };
    },
  };
}

const PLACEHOLDER_REMEDY = "an address in place of the placeholder, or {$NAME} for an environment variable";

/** The word that was probably meant, if its scheme has another name or is misspelled. */
function likelyScheme(named: string, schemes: readonly TargetScheme[], rest: string): string | undefined {
  const [synonym] = SYNONYMS[named]?.filter((scheme) => schemes.includes(scheme)) ?? [];
  const likely = synonym ?? nearestWord(named, schemes);
  return likely === undefined ? undefined : `${likely}://${rest}`;
}

/** `tls://192.0.2.53` for `tls:192.0.2.53` and `tls:/192.0.2.53`. */
function withSlashes(text: string, scheme: TargetScheme): string {
  return `${scheme}://${text.slice(scheme.length + 1).replace(/^\//, "")}`;
}

/** `$UPSTREAM` and `10.x.0.10`: placeholders that were not filled in. */
function isPlaceholder(text: string): boolean {
  return text.includes("$") || /^(?=.*x)([\dx]+\.){3}[\dx]+(:[\dx]+)?$/i.test(text);
}

function partsOf(
  scheme: TargetScheme,
  rest: string,
): { readonly text: string; readonly serverName: string | undefined; readonly path: string | undefined } {
  // In plain DNS, a percent sign starts the zone of a link-local address, and a leading slash a file.
  if (scheme === "dns" || rest.startsWith("/")) return { text: rest, serverName: undefined, path: undefined };
  const [, host = rest, path] = (scheme === "https" ? /^([^/]*)(\/.*)?$/.exec(rest) : undefined) ?? [];
  return { ...splitServerName(host), path };
}

/** Addresses of hosts in TO that are not looked up; keys are lower-case names with a final dot. */
export type Bootstrap = ReadonlyMap<string, readonly string[]>;

/**
 * The servers that the words stand for, each once, in order.
 * @throws SetupError
 */
export async function resolveTargets(
  targets: readonly Target[],
  lookup: HostLookup,
  bootstrap?: Bootstrap,
): Promise<Place[]> {
  const resolved = await Promise.all(targets.map((word) => placesOf(word, lookup, bootstrap)));
  const places = new Map<string, Place>();
  for (const place of resolved.flat()) {
    const key = `${place.scheme}://${place.address.key}${place.path}`;
    if (!places.has(key)) places.set(key, place);
  }
  if (places.size === 0) throw new NoAddressError(targets);
  return [...places.values()];
}

/** All words are files, and no file has an address. */
class NoAddressError extends SetupError {
  constructor(targets: readonly Target[]) {
    const files = targets.flatMap((word) => (word.kind === "address" ? [] : word.text)).join(", ");
    super(`no valid upstream addresses found: no nameserver line in ${files}`);
  }
}

/**
 * Checks the words without any query: whether the named files exist.
 * @throws SetupError
 */
export async function examineTargets(targets: readonly Target[]): Promise<void> {
  const isFile = async (word: Target) =>
    word.kind === "file or host" && (hostOf(word) === undefined || (await fileExists(word.text)));
  const areFiles = await Promise.all(targets.map(isFile));
  const nobody: HostLookup = () => Promise.reject(new Error("not looked up"));
  const places = await Promise.all(
    targets.filter((_, at) => areFiles[at] === true).map((file) => placesOf(file, nobody)),
  );
  // A file without an address is accepted beside other words, as at the start.
  if (targets.length > 0 && places.length === targets.length && places.every((found) => found.length === 0))
    throw new NoAddressError(targets);
}

/** Whether a word such as `resolv.conf`, which could be a host, is a file that can be read. */
async function fileExists(path: string): Promise<boolean> {
  try {
    await readTextFile(path);
    return true;
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}

async function placesOf(word: Target, lookup: HostLookup, bootstrap?: Bootstrap): Promise<Place[]> {
  const { scheme, serverName, path } = word;
  const at = (address: UpstreamAddress): Place => ({
    address,
    scheme,
    serverName,
    path,
    authority: address.path === undefined ? address.text : "localhost",
  });
  if (word.kind === "address") return [at(word.address)];
  const { text } = word;
  const usualPort = PORTS[scheme];
  const host = hostOf(word);
  let problem: string;
  let asFile = "";
  try {
    const found = parseNameservers(await readTextFile(text));
    return found.flatMap(({ host }) => upstreamAddress(host, usualPort) ?? []).map(at);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const isMissing = "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
    problem = fileFault(error);
    // The word names an existing file, so the error must be about the file and not about DNS.
    if (!isMissing) asFile = ` (${problem})`;
  }
  if (host === undefined)
    throw new SetupError(`${notATarget(text)} (${problem})`, {
      notes: [
        scheme === "dns"
          ? "name an IP address, a file with nameserver lines, or a host"
          : `name an IP address or a host after ${scheme}://`,
      ],
    });
  const { name, spelled, port } = host;
  let found = bootstrap?.get(name.toLowerCase().toString());
  try {
    found ??= await lookup(name);
  } catch (error) {
    throw new SetupError(`failed to resolve "${text}": ${messageOf(error)}${asFile}`, {
      notes: [
        `write its IP address${bootstrap === undefined ? "" : ", or name a server that resolves it with 'resolver'"}`,
      ],
    });
  }
  return found
    .flatMap((ip) => upstreamAddress(ip, port) ?? [])
    .map((address) => ({
      ...at(address),
      // A host given by name has to prove its name.
      serverName: serverName ?? spelled,
      authority: port === usualPort ? spelled : `${spelled}:${port}`,
    }));
}

interface Host {
  readonly name: Name;
  /** Without the final dot. */
  readonly spelled: string;
  readonly port: number;
}

/** The meaning of the word if there is no such file; `undefined` if it can only be a file. */
function hostOf({ text, scheme }: Target & { readonly kind: "file or host" }): Host | undefined {
  const [, host = text, digits = String(PORTS[scheme])] = /^([^:]*):(\d{1,5})$/.exec(text) ?? [];
  const name = hostName(host);
  const port = Number(digits);
  if (name === undefined || port < 1 || port > 0xffff) return undefined;
  return { name, spelled: host.replace(/\.$/, ""), port };
}

/** Letters, digits, hyphens and underscores, which excludes paths. */
function hostName(text: string): Name | undefined {
  return /^[A-Za-z0-9_]([A-Za-z0-9_-]*\.?)*$/.test(text) && !text.includes("..")
    ? Name.tryParse(text)
    : undefined;
}

function notATarget(word: string): string {
  return `not an IP address, file, or valid domain: "${word}"`;
}
