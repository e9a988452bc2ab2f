/** The kinds of value that a single word of a configuration can have. */
import { normaliseZone } from "../../corefile/server-key.ts";
import { Name, NameError } from "../../dns/name.ts";
import { parseRcode, rcodeName } from "../../dns/numbers.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { parseIpAddress, parseScopedIpAddress } from "../../lib/net/ip-address.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { formatOctetCount, parseOctetCount } from "../../lib/text/octet-count.ts";
import { formatGoDuration, parseGoDuration } from "../../lib/time/duration.ts";
import type { ConfigContext } from "./context.ts";

/** Converts a word to a value, or returns the reason why it cannot. */
export interface Value<T> {
  /** The expected value in words: "a duration such as 30s". */
  readonly expected: string;
  /** All valid words, if they can be listed. */
  readonly words?: readonly string[];
  /** The value, or the reason why the word has none. */
  parse(text: string, context: ConfigContext): T | ValueProblem;
}

/** The reason why a word was refused; the parser adds file, line and column. */
export class ValueProblem {
  /** The sentence for the operator. */
  readonly message: string;
  /** The known word nearest to the one found. */
  readonly suggestion: string | undefined;
  /** The valid words at this place; without it, {@link Value.expected}. */
  readonly expected: string | undefined;

  constructor(message: string, suggestion?: string, expected?: string) {
    this.message = message;
    this.suggestion = suggestion;
    this.expected = expected;
  }
}

/** Any word. */
export function text(expected = "a word"): Value<string> {
  return { expected, parse: (word) => word };
}

/** `problem` replaces the usual out-of-range message where CoreDNS has a text of its own. */
export interface RangeRules {
  readonly min?: number;
  readonly max?: number;
  readonly problem?: (word: string) => string;
}

/** A whole number, by default any that a number holds exactly. */
export function integer(rules: RangeRules = {}): Value<number> {
  const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = rules;
  const expected = `a whole number${rangeWords(rules, String)}`;
  return {
    expected,
    parse(word) {
      const value = /^[+-]?\d+$/.test(word) ? Number(word) : Number.NaN;
      if (value >= min && value <= max) return value;
      return new ValueProblem(rules.problem?.(word) ?? `'${word}' is not ${expected}`);
    },
  };
}

/** Milliseconds from Go's duration syntax; `bareSeconds` also accepts a number of seconds without unit. */
export function duration(rules: RangeRules & { readonly bareSeconds?: boolean } = {}): Value<number> {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = rules;
  const expected = `a duration such as 30s or 1m30s${rangeWords(rules, formatGoDuration)}`;
  return {
    expected,
    parse(word) {
      const value =
        rules.bareSeconds === true && /^\d+$/.test(word)
          ? Number(word) * 1000
          : (parseGoDuration(word) ?? Number.NaN);
      if (value >= min && value <= max) return value;
      if (rules.problem !== undefined) return new ValueProblem(rules.problem(word));
      if (/^\d+$/.test(word) && word !== "0")
        return new ValueProblem(`duration '${word}' has no unit`, `${word}s`);
      return new ValueProblem(`'${word}' is not ${expected}`);
    },
  };
}

/** An amount of memory in bytes, such as `64Mi`. */
export function octetCount(rules: RangeRules = {}): Value<number> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = rules;
  const expected = `an amount of memory such as 64Mi${rangeWords(rules, formatOctetCount)}`;
  return {
    expected,
    parse(word) {
      const value = parseOctetCount(word) ?? Number.NaN;
      if (value >= min && value <= max) return value;
      return new ValueProblem(rules.problem?.(word) ?? `'${word}' is not ${expected}`);
    },
  };
}

/** One of a few words; case-sensitive by default. */
export function choice<const W extends string>(
  words: readonly W[],
  options: { readonly ignoreCase?: boolean; readonly problem?: (word: string) => string } = {},
): Value<W> {
  return {
    expected: `one of ${words.join(", ")}`,
    words,
    parse(word) {
      const wanted = options.ignoreCase === true ? word.toLowerCase() : word;
      const found = words.find(
        (candidate) => (options.ignoreCase === true ? candidate.toLowerCase() : candidate) === wanted,
      );
      return (
        found ??
        new ValueProblem(options.problem?.(word) ?? `unknown value '${word}'`, nearestWord(wanted, words))
      );
    },
  };
}

/** A domain name, made fully qualified; keeps its case. */
export function domainName(): Value<Name> {
  return {
    expected: "a domain name",
    parse(word) {
      try {
        return Name.parse(word);
      } catch (error) {
        if (error instanceof NameError) return new ValueProblem(error.message);
        throw error;
      }
    },
  };
}

/** An IP address without port, as octets and as written. */
export function ipAddress(problem?: (word: string) => string): Value<string> {
  return {
    expected: "an IP address",
    parse: (word) =>
      parseIpAddress(word) === undefined
        ? new ValueProblem(problem?.(word) ?? `'${word}' is not an IP address`)
        : word,
  };
}

/** An address with its port. */
export interface HostPort {
  /** IP address, zone index included. */
  readonly host: string;
  readonly port: number;
}

/** `IP`, `IP:PORT`, `[IPv6]:PORT` (docs/spec/coredns-behaviour.md#arguments). */
export function hostPort(defaultPort: number): Value<HostPort> {
  return {
    expected: "an IP address, with a port if it is not the usual one",
    parse: (word) =>
      parseHostPort(word, defaultPort) ?? new ValueProblem(`must specify an IP address: '${word}'`),
  };
}

export function parseHostPort(word: string, defaultPort: number): HostPort | undefined {
  if (parseScopedIpAddress(word) !== undefined) return { host: word, port: defaultPort };
  const match = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(word);
  const host = match?.[1] ?? match?.[2];
  const port = match?.[3] === undefined ? defaultPort : Number(match[3]);
  if (host === undefined || parseScopedIpAddress(host) === undefined || port > 0xffff) return undefined;
  return { host, port };
}

/**
 * An address to listen on for HTTP: `:8080`, `localhost:9153`, `[::1]:80`, `1.2.3.4:80`. An empty host means all
 * addresses.
 */
export function listenAddress(): Value<string> {
  return {
    expected: "an address such as :8080 or 127.0.0.1:8080",
    parse(word) {
      // Without a port the system picks one, as in CoreDNS: an unset variable leads to that.
      const match = /^(\[[0-9a-fA-F:.%]+\]|[^:[\]]*):(\d{0,5})$/.exec(word);
      if (match === null || Number(match[2]) > 0xffff)
        return new ValueProblem(`'${word}' is not an address with a port`);
      return word;
    },
  };
}

/** A record type by its name, such as `AAAA` or `TYPE123`, as its number. */
export function recordType(): Value<number> {
  return {
    expected: "a record type such as A or TXT",
    parse: (word) => parseRecordType(word) ?? new ValueProblem(`'${word}' is not a record type`),
  };
}

/** A response code by its name, such as `NXDOMAIN`, as its number. */
export function rcode(): Value<number> {
  return {
    expected: `an rcode such as ${rcodeName(3)} or ${rcodeName(2)}`,
    parse: (word) => parseRcode(word) ?? new ValueProblem(`'${word}' is not an rcode`),
  };
}

/** A percentage with its sign. */
export function percentage(rules: RangeRules): Value<number> {
  const { min = 0, max = 100 } = rules;
  return {
    expected: `a percentage from ${min}% to ${max}%`,
    parse(word) {
      const value = /^\d+%$/.test(word) ? Number(word.slice(0, -1)) : Number.NaN;
      if (value >= min && value <= max) return value;
      return new ValueProblem(
        rules.problem?.(word) ?? `'${word}' is not a percentage from ${min}% to ${max}%`,
      );
    },
  };
}

/** Zones from one word: a name, a key with scheme and port, or a reverse CIDR, which may cover several zones. */
export function parseZones(word: string): Name[] | ValueProblem {
  const zones = normaliseZone(word);
  if (zones.length === 0) return new ValueProblem(`'${word}' is not a zone`);
  return zones.map((zone) => Name.parse(zone));
}

function rangeWords(rules: RangeRules, format: (value: number) => string): string {
  if (rules.min !== undefined && rules.max !== undefined)
    return ` from ${format(rules.min)} to ${format(rules.max)}`;
  if (rules.min !== undefined) return ` of ${format(rules.min)} or more`;
  return rules.max === undefined ? "" : ` of ${format(rules.max)} or less`;
}
