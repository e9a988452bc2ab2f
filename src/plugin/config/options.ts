/** The lines of a directive's block. */
import type { Directive } from "../../corefile/tree.ts";
import { Name } from "../../dns/name.ts";
import { Fallthrough } from "../query/zones.ts";
import { type ArgumentsOf, type ArgumentTable, usageOf, wordsOf } from "./argument-table.ts";
import { ArgumentCursor, INVALID, type Invalid, overlooked, required, zones } from "./arguments.ts";
import type { ConfigContext } from "./context.ts";
import type { Value } from "./values.ts";

/** One keyword of a block; it receives all lines that begin with it, possibly none. */
export interface Option<T> {
  read(lines: readonly Directive[], context: ConfigContext): T | Invalid;
  readonly usage: string;
  /** The valid words of each argument; an empty list where they cannot be listed. */
  readonly words?: readonly (readonly string[])[] | undefined;
}

/** For options whose further words CoreDNS ignores: these get a warning instead of an error. */
export interface LineRules {
  readonly overlook?: boolean;
}

/** A keyword alone: true if it is present. */
export function flag(rules: LineRules = {}): Option<boolean> {
  const args = rules.overlook === true ? { more: overlooked() } : {};
  return {
    read(lines, context) {
      for (const line of lines) if (readLine(line, args, context) === INVALID) return INVALID;
      return lines.length > 0;
    },
    usage: "",
  };
}

/** A keyword with one value, `fallback` without the line. The last of several lines counts. */
export function single<T>(value: Value<T>, fallback?: undefined, rules?: LineRules): Option<T | undefined>;
export function single<T>(value: Value<T>, fallback: T, rules?: LineRules): Option<T>;
export function single<T>(value: Value<T>, fallback?: T, rules: LineRules = {}): Option<T | undefined> {
  const args = { value: required(value) };
  const inner = option(rules.overlook === true ? { ...args, more: overlooked() } : args);
  return {
    read(lines, context) {
      const read = inner.read(lines, context);
      return read === INVALID ? INVALID : read === undefined ? fallback : read.value;
    },
    usage: "VALUE",
    words: inner.words,
  };
}

/** A keyword with arguments; `undefined` without the line. The last of several lines counts. */
export function option<A extends ArgumentTable>(args: A): Option<ArgumentsOf<A> | undefined> {
  const lines = optionList(args);
  return {
    read(occurrences, context) {
      const all = lines.read(occurrences, context);
      if (all === INVALID) return INVALID;
      const [first] = occurrences;
      const last = occurrences.at(-1);
      if (first !== undefined && last !== undefined && first !== last) {
        const text = `'${first.name.text}' is repeated on line ${last.name.span.line}: only the last counts`;
        context.report.warning("PLUGIN_OPTION_REPEATED", first.name.span, text);
      }
      return all.at(-1);
    },
    usage: lines.usage,
    words: lines.words,
  };
}

/** A keyword with arguments that may be repeated; all lines count. */
export function optionList<A extends ArgumentTable>(args: A): Option<readonly ArgumentsOf<A>[]> {
  return {
    read(lines, context) {
      const all: ArgumentsOf<A>[] = [];
      let valid = true;
      for (const line of lines) {
        const values = readLine(line, args, context);
        if (values === INVALID) valid = false;
        else all.push(values);
      }
      return valid ? all : INVALID;
    },
    usage: usageOf(args),
    words: wordsOf(args),
  };
}

/** `fallthrough [ZONES...]`: nothing falls through without the line, everything without zones. */
export function fallthrough(): Option<Fallthrough> {
  const inner = option({ zones: zones([Name.root]) });
  return {
    read(lines, context) {
      const read = inner.read(lines, context);
      if (read === INVALID) return INVALID;
      return read === undefined ? Fallthrough.none : new Fallthrough(read.zones);
    },
    usage: inner.usage,
  };
}

/** A keyword that is accepted for old Corefiles and does nothing; warns with `why`. */
export function ignored(why: string): Option<undefined> {
  return {
    read(lines, context) {
      for (const line of lines) {
        context.report.warning(
          "PLUGIN_OPTION_IGNORED",
          line.name.span,
          `'${line.name.text}' has no effect: ${why}`,
        );
      }
      return undefined;
    },
    usage: "",
  };
}

function readLine<A extends ArgumentTable>(
  line: Directive,
  args: A,
  context: ConfigContext,
): ArgumentsOf<A> | Invalid {
  if (line.block !== undefined) {
    context.report.error("PLUGIN_UNEXPECTED_BLOCK", line.name.span, `'${line.name.text}' takes no block`);
    return INVALID;
  }
  const cursor = new ArgumentCursor(line.name, line.args, context);
  const values: Record<string, unknown> = {};
  for (const [name, argument] of Object.entries(args)) {
    const value = argument.read(cursor, name.toUpperCase());
    if (value === INVALID) return INVALID;
    values[name] = value;
  }
  return cursor.finish() ? (values as ArgumentsOf<A>) : INVALID;
}
