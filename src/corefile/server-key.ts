/** Keys of server blocks: `[scheme://]zone[:port]` (docs/spec/coredns-behaviour.md#server-keys). */
import { parseIpAddress } from "../lib/net/ip-address.ts";
import { nearestWord } from "../lib/text/nearest-word.ts";
import { type DiagnosticSink, formatPlace, quoteText, type Span } from "./diagnostic.ts";
import type { CorefileDiagnosticCode } from "./diagnostic-codes.ts";
import type { Token } from "./tokens.ts";
import type { Corefile, ServerBlock } from "./tree.ts";
import { readZone, unusualZone } from "./zone.ts";

/** The protocols of a key. */
export type Scheme = "dns" | "tls" | "quic" | "grpc" | "https" | "https3";

/** A key of a server block: scheme, zone and port. */
export interface ServerKey {
  readonly scheme: Scheme;
  /** Lower-case presentation form with final dot. */
  readonly zone: string;
  /** 0 lets the system choose a free port. */
  readonly port: number;
  /** Place of the key. Keys expanded from one network or port range share it. */
  readonly span: Span;
}

/** Default ports by scheme; the port of `dns` can be set for the process. */
export const defaultPorts: Readonly<Record<Scheme, number>> = {
  dns: 53,
  tls: 853,
  quic: 853,
  grpc: 443,
  https: 443,
  https3: 443,
};

export interface ServerKeyOptions {
  /** Port of keys with the scheme `dns` and no port. Default 53. */
  readonly defaultPort?: number | undefined;
}

/**
 * Reads the keys of all server blocks, expands networks and port ranges, and reports faults. Invalid and duplicate keys are left
 * out.
 * Two blocks may share a key if each listens on its own addresses (`bind`) or one of them has a `view`. Only certain errors are
 * reported here: `bind` may spell one address in several ways, which the server detects.
 *
 * @returns one list per block, in the order of the blocks. The first of each expansion is in the place of its key, the rest after
 * all keys.
 */
export function resolveServerKeys(
  corefile: Corefile,
  sink: DiagnosticSink,
  options: ServerKeyOptions = {},
): ServerKey[][] {
  const resolver = new KeyResolver(sink, options.defaultPort ?? defaultPorts.dns);
  return corefile.blocks.map((block) => resolver.resolveBlock(block));
}

/** A key as in messages and logs: `dns://example.org.:53`. */
export function formatServerKey({ scheme, zone, port }: ServerKey): string {
  return `${scheme}://${zone}:${port}`;
}

/**
 * Reads a zone among the arguments of a directive (docs/spec/coredns-behaviour.md#arguments): scheme and port are ignored, a
 * network becomes its reverse zones.
 *
 * @returns zones in lower-case presentation form with final dot; empty if the text is not a zone, which CoreDNS ignores.
 */
export function normaliseZone(text: string): readonly string[] {
  const parts = splitKey(text);
  return parts.fault === undefined ? (readZone(parts.zone).zones ?? []) : [];
}

/** A range with more ports is probably a mistake. */
const MAX_PORTS_IN_RANGE = 100;

/** Each key is a route with a chain of plugins. */
const MAX_KEYS = 100_000;

class KeyResolver {
  readonly #sink: DiagnosticSink;
  readonly #defaultPort: number;
  readonly #places = new Map<string, Span>();
  #count = 0;

  constructor(sink: DiagnosticSink, defaultPort: number) {
    this.#sink = sink;
    this.#defaultPort = defaultPort;
  }

  resolveBlock(block: ServerBlock): ServerKey[] {
    const firsts: ServerKey[] = [];
    const rest: ServerKey[] = [];
    const listenAddresses = block.directives
      .filter((directive) => directive.name.text === "bind")
      .map(({ args, block: options }) =>
        JSON.stringify([args.map((arg) => arg.text), options?.map(optionText)]),
      )
      .join();
    const hasView = block.directives.some((directive) => directive.name.text === "view");
    for (const token of block.keys) {
      const keys = this.#expand(token).filter((key) => hasView || this.#isNew(key, listenAddresses));
      const [first, ...others] = keys;
      if (first !== undefined) firsts.push(first);
      rest.push(...others);
    }
    return [...firsts, ...rest];
  }

  #expand(token: Token): ServerKey[] {
    const parts = splitKey(token.text);
    if (parts.fault !== undefined) {
      this.#sink.error(parts.code, token.span, parts.fault, parts);
      return [];
    }
    const { scheme, zone, ports } = parts;
    const reading = readZone(zone);
    if (reading.zones === undefined) {
      const fault = zone === "" ? `there is no zone in ${quoteText(token.text)}` : reading.fault;
      this.#sink.error("COREFILE_INVALID_ZONE", token.span, fault, {
        ...(zone === "" && { suggestion: token.text.replace(/(?=:\d[\d-]*$)/, ".") }),
        expected:
          "a domain name with labels of up to 63 octets, `.` for all names, or a network such as 10.0.0.0/8",
      });
      return [];
    }
    this.#warnOfUnusualZone(token, zone);
    const keyPorts = ports ?? [scheme === "dns" ? this.#defaultPort : defaultPorts[scheme]];
    this.#count += reading.zones.length * keyPorts.length;
    if (this.#count > MAX_KEYS) {
      const message = `the keys of this Corefile expand to more than ${MAX_KEYS}`;
      this.#sink.error("COREFILE_TOO_MANY_KEYS", token.span, message);
      return [];
    }
    return reading.zones.flatMap((name) =>
      keyPorts.map((port) => ({ scheme, zone: name, port, span: token.span })),
    );
  }

  #warnOfUnusualZone(token: Token, zone: string): void {
    // The last group of an IPv6 address looks like a port, so the whole address is kept.
    const zoneAndPort = token.text.replace(SCHEME, "");
    const unusual = unusualZone(parseIpAddress(zoneAndPort) === undefined ? zone : zoneAndPort);
    if (unusual === undefined) return;
    this.#sink.warning("COREFILE_UNUSUAL_ZONE", token.span, unusual.message, {
      suggestion: unusual.suggestion,
      notes: unusual.note === undefined ? [] : [unusual.note],
    });
  }

  #isNew(key: ServerKey, listenAddresses: string): boolean {
    const text = formatServerKey(key);
    const place = `${text} ${listenAddresses}`;
    const before = this.#places.get(place);
    if (before === undefined) {
      this.#places.set(place, key.span);
      return true;
    }
    const message = `cannot serve ${text} - it is already defined`;
    this.#sink.error("COREFILE_DUPLICATE_KEY", key.span, message, {
      expected: "each zone and port once; server blocks may share one if each has its own 'bind' or 'view'",
      notes: [`it is first defined at ${formatPlace(before)}`],
    });
    return false;
  }
}

function optionText({ name, args }: { name: Token; args: readonly Token[] }): string[] {
  return [name.text, ...args.map((arg) => arg.text)];
}

type KeyParts =
  | {
      readonly scheme: Scheme;
      readonly zone: string;
      /** `undefined` if the key has no port. */
      readonly ports: readonly number[] | undefined;
      readonly fault?: undefined;
    }
  | {
      readonly fault: string;
      readonly code: CorefileDiagnosticCode;
      readonly expected?: string;
      readonly suggestion?: string | undefined;
    };

/** Words that start the YAML of a Kubernetes object. */
const YAML_KEYS: ReadonlySet<string> = new Set(["apiVersion:", "kind:", "metadata:", "data:", "items:"]);
const NOT_YAML =
  "a Corefile; this looks like the YAML of a ConfigMap: name a file that holds only the text of its key `Corefile`";

function splitKey(text: string): KeyParts {
  const [prefix = "", schemeText] = SCHEME.exec(text) ?? [];
  const scheme = schemeText === undefined ? "dns" : schemes.find((known) => known === schemeText);
  if (scheme === undefined) {
    return {
      code: "COREFILE_UNKNOWN_SCHEME",
      fault: `unknown scheme ${quoteText(`${schemeText}://`)}: CoreDNS takes it for a part of the zone's name`,
      expected: `one of ${schemes.map((known) => `${known}://`).join(", ")}, in lower case`,
      suggestion: schemeText === undefined ? undefined : nearestWord(schemeText, schemes),
    };
  }
  const rest = text.slice(prefix.length);
  const colon = rest.lastIndexOf(":");
  if (colon === rest.length - 1) {
    return {
      code: rest === "" ? "COREFILE_INVALID_ZONE" : "COREFILE_INVALID_PORT",
      fault: `expecting data after last colon: ${JSON.stringify(rest)}`,
      expected: YAML_KEYS.has(rest)
        ? NOT_YAML
        : rest === ""
          ? "a zone, `.` for all names"
          : "a port number after the colon, or no colon",
    };
  }
  if (colon === -1) return { scheme, zone: rest, ports: undefined };

  const zone = rest.slice(0, colon);
  const afterColon = rest.slice(colon + 1);
  const [, first, last] = /^(\d+)-(\d+)$/.exec(afterColon) ?? [];
  if (first !== undefined && last !== undefined)
    return splitPortRange(scheme, zone, Number(first), Number(last));
  if (!/^[+-]?\d+$/.test(afterColon)) return { scheme, zone: rest, ports: undefined };
  const port = Number(afterColon);
  if (port < 0 || port > MAX_PORT) return invalidPort(`port ${afterColon} does not exist`);
  return { scheme, zone, ports: [port] };
}

const schemes: readonly Scheme[] = ["dns", "tls", "quic", "grpc", "https", "https3"];

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\//i;

const MAX_PORT = 65_535;

/** CoreDNS has no port ranges: it takes the text for a name with a colon. */
function splitPortRange(scheme: Scheme, zone: string, first: number, last: number): KeyParts {
  const range = `${first}-${last}`;
  if (first === 0 || last > MAX_PORT)
    return invalidPort(`port range ${range} leaves the ports 1 to ${MAX_PORT}`);
  if (last < first) return invalidPort(`port range ${range} ends before it begins`);
  const count = last - first + 1;
  if (count > MAX_PORTS_IN_RANGE) {
    return invalidPort(`port range ${range} has ${count} ports; at most ${MAX_PORTS_IN_RANGE} are allowed`);
  }
  return { scheme, zone, ports: Array.from({ length: count }, (_, index) => first + index) };
}

function invalidPort(fault: string): KeyParts {
  return {
    code: "COREFILE_INVALID_PORT",
    fault,
    expected: `a port from 0 to ${MAX_PORT}, or a range such as 5300-5303`,
  };
}
