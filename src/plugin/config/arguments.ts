/** The arguments of a directive or an option: their number, and the meaning of each. */
import type { Token } from "../../corefile/tokens.ts";
import type { Name } from "../../dns/name.ts";
import { ZoneList } from "../query/zones.ts";
import type { ConfigContext } from "./context.ts";
import { parseZones, type Value, ValueProblem } from "./values.ts";

/** Stands for a value that was reported as invalid. */
export const INVALID: unique symbol = Symbol("invalid");
export type Invalid = typeof INVALID;

/** One positional argument, or several at the end of the line. */
export interface Argument<T> {
  /** @param label the argument's name in messages */
  read(cursor: ArgumentCursor, label: string): T | Invalid;
  usage(label: string): string;
  /** All valid words, if they can be listed. */
  readonly words?: readonly string[] | undefined;
}

/** The arguments of one line, taken from left to right. */
export class ArgumentCursor {
  readonly owner: Token;
  readonly context: ConfigContext;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(owner: Token, tokens: readonly Token[], context: ConfigContext) {
    this.owner = owner;
    this.context = context;
    this.#tokens = tokens;
  }

  peek(): Token | undefined {
    return this.#tokens[this.#next];
  }

  take(): Token | undefined {
    const token = this.#tokens[this.#next];
    if (token !== undefined) this.#next++;
    return token;
  }

  /** Reads a token as a value, and reports it if it is invalid. */
  value<T>(token: Token, value: Value<T>): T | Invalid {
    const parsed = value.parse(token.text, this.context);
    if (!(parsed instanceof ValueProblem)) return parsed;
    this.context.report.error("PLUGIN_BAD_VALUE", token.span, parsed.message, {
      expected: parsed.expected ?? value.expected,
      suggestion: parsed.suggestion,
    });
    return INVALID;
  }

  missing(label: string, expected: string): Invalid {
    const last = this.#tokens[this.#next - 1] ?? this.owner;
    this.context.report.error(
      "PLUGIN_ARGUMENT_MISSING",
      last.span,
      `Wrong argument count or unexpected line ending after '${last.text}'`,
      { expected: `${label}: ${expected}` },
    );
    return INVALID;
  }

  /** Reports arguments that were not read. */
  finish(): boolean {
    const extra = this.peek();
    if (extra === undefined) return true;
    this.context.report.error(
      "PLUGIN_ARGUMENT_UNEXPECTED",
      extra.span,
      `Wrong argument count or unexpected line ending after '${extra.text}'`,
      { expected: this.#mostWords() },
    );
    return false;
  }

  /** Skips arguments that were not read, with a warning. */
  overlook(): void {
    const extra = this.peek();
    if (extra === undefined) return;
    const expected = this.#mostWords();
    this.#next = this.#tokens.length;
    this.context.report.warning("PLUGIN_ARGUMENT_IGNORED", extra.span, `'${extra.text}' has no effect here`, {
      expected,
    });
  }

  #mostWords(): string {
    const most =
      this.#next === 0 ? "no arguments" : `at most ${this.#next} argument${this.#next === 1 ? "" : "s"}`;
    return `${most} after '${this.owner.text}'`;
  }
}

/** Exactly one word. */
export function required<T>(value: Value<T>): Argument<T> {
  return {
    read(cursor, label) {
      const token = cursor.take();
      return token === undefined ? cursor.missing(label, value.expected) : cursor.value(token, value);
    },
    usage: (label) => label,
    words: value.words,
  };
}

/** One word, or `fallback` without it. */
export function optional<T>(value: Value<T>): Argument<T | undefined>;
export function optional<T>(value: Value<T>, fallback: T): Argument<T>;
export function optional<T>(value: Value<T>, fallback?: T): Argument<T | undefined> {
  return optionalWhen(value, () => true, fallback);
}

/** Like {@link optional}, but takes only a word that `applies` accepts: `cache [TTL] [ZONES...]`. */
export function optionalWhen<T>(
  value: Value<T>,
  applies: (text: string) => boolean,
  fallback?: T,
): Argument<T | undefined> {
  return {
    read(cursor) {
      const token = cursor.peek();
      if (token === undefined || !applies(token.text)) return fallback;
      cursor.take();
      return cursor.value(token, value);
    },
    usage: (label) => `[${label}]`,
    words: value.words,
  };
}

/** All remaining words, at least `atLeast` of them. */
export function rest<T>(value: Value<T>, atLeast = 0): Argument<readonly T[]> {
  return {
    read(cursor, label) {
      const values: T[] = [];
      let valid = true;
      for (let token = cursor.take(); token !== undefined; token = cursor.take()) {
        const parsed = cursor.value(token, value);
        if (parsed === INVALID) valid = false;
        else values.push(parsed);
      }
      if (!valid) return INVALID;
      return values.length < atLeast ? cursor.missing(label, value.expected) : values;
    },
    usage: (label) => (atLeast === 0 ? `[${label}...]` : `${label}...`),
    words: value.words,
  };
}

/** The remaining words as tokens, for a grammar of the plugin's own. */
export function restTokens(): Argument<readonly Token[]> {
  return {
    read(cursor) {
      const tokens: Token[] = [];
      for (let token = cursor.take(); token !== undefined; token = cursor.take()) tokens.push(token);
      return tokens;
    },
    usage: (label) => `[${label}...]`,
  };
}

/** Words behind the last argument that CoreDNS reads and ignores: accepted, with a warning. */
export function overlooked(): Argument<undefined> {
  return {
    read(cursor) {
      cursor.overlook();
      return undefined;
    },
    usage: () => "",
  };
}

/** The remaining words as zones; without any, `fallback` or the zones of the server block (docs/spec/coredns-behaviour.md#arguments). */
export function zones(fallback?: readonly Name[]): Argument<ZoneList> {
  return {
    read(cursor) {
      const names: Name[] = [];
      let given = false;
      for (let token = cursor.take(); token !== undefined; token = cursor.take()) {
        given = true;
        const parsed = parseZones(token.text);
        if (parsed instanceof ValueProblem) {
          // CoreDNS skips an invalid zone without a warning.
          cursor.context.report.warning("PLUGIN_BAD_ZONE", token.span, `${parsed.message}: it is ignored`, {
            expected: "a zone",
          });
        } else {
          names.push(...parsed);
        }
      }
      return new ZoneList(given ? names : (fallback ?? cursor.context.zones));
    },
    usage: (label) => `[${label}...]`,
  };
}
