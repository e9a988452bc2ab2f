/**
 * Directives declared as data. One declaration gives the parser, its error messages with their places, and the
 * description that help, documentation and `check` print. Reading a configuration opens nothing: no file, no socket,
 * no clock.
 */

import type { DiagnosticSink, Span } from "../../corefile/diagnostic.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { Directive } from "../../corefile/tree.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { type ArgumentsOf, type ArgumentTable, usageOf, wordsOf } from "./argument-table.ts";
import { ArgumentCursor, INVALID, type Invalid } from "./arguments.ts";
import type { ConfigContext } from "./context.ts";
import type { Option } from "./options.ts";

/** A grammar for the occurrences of one directive within one server block. */
export interface ConfigSchema<T> {
  /** @returns one configuration for each instance, `undefined` after an error was reported */
  parse(occurrences: readonly Directive[], context: ConfigContext): readonly T[] | undefined;
  readonly description: DirectiveDescription;
}

/** The declaration as text, for help and documentation. */
export interface DirectiveDescription {
  /** As in the README's syntax: `[TTL] [ZONES...]`. */
  readonly usage: string;
  /** The valid words of each argument, for completion; an empty list where they cannot be listed. */
  readonly words?: readonly (readonly string[])[];
  readonly options: readonly OptionDescription[];
}

export interface OptionDescription {
  readonly name: string;
  readonly usage: string;
  /** As for the arguments of the directive. */
  readonly words?: readonly (readonly string[])[];
}

export type OptionTable = Readonly<Record<string, Option<unknown>>>;
/** A conditional type for the same reason as {@link ArgumentsOf}. */
export type OptionsOf<O extends OptionTable> = O extends OptionTable
  ? { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never }
  : never;

/** The arguments and options of a directive. */
export interface DirectiveSpec<A extends ArgumentTable, O extends OptionTable, C> {
  /** In the order on the line; messages use the key in upper case. */
  readonly args?: A;
  /** The lines of the block; the key is the keyword. */
  readonly options?: O;
  /** Whether keywords of the block may also be in upper case. */
  readonly ignoreCase?: boolean;
  /**
   * Whether the directive may occur several times in a block. `once` reports the second one; `each` makes one
   * instance for each; `first` and `last` use only that one, and warn. Default `once`.
   */
  readonly occurrences?: "once" | "each" | "first" | "last";
  /** Reads lines of the block that begin with an unknown keyword (inline entries of `hosts`). */
  readonly otherwise?: (line: Directive, context: ConfigContext) => boolean;
  /** Rules across arguments and options. `at` gives the place of an option, or of the directive. */
  readonly check?: (config: C, report: DiagnosticSink, at: (option?: string) => Span) => void;
}

/** No arguments, or no options. */
export type EmptyTable = Readonly<Record<never, never>>;

/** A directive with positional arguments and a block of options. */
export function directive<A extends ArgumentTable = EmptyTable, O extends OptionTable = EmptyTable>(
  spec: DirectiveSpec<A, O, ArgumentsOf<A> & OptionsOf<O>>,
): ConfigSchema<ArgumentsOf<A> & OptionsOf<O>> {
  type Config = ArgumentsOf<A> & OptionsOf<O>;
  const args: ArgumentTable = spec.args ?? {};
  const options: OptionTable = spec.options ?? {};

  function parseOne(occurrence: Directive, context: ConfigContext): Config | Invalid {
    const config: Record<string, unknown> = {};
    let valid = readArguments(occurrence, args, context, config);
    const places = new Map<string, Directive>();
    const linesByOption = new Map<string, Directive[]>();
    for (const line of occurrence.block ?? []) {
      const keyword = spec.ignoreCase === true ? line.name.text.toLowerCase() : line.name.text;
      if (Object.hasOwn(options, keyword)) {
        places.set(keyword, line);
        const lines = linesByOption.get(keyword);
        if (lines === undefined) linesByOption.set(keyword, [line]);
        else lines.push(line);
      } else if (spec.otherwise === undefined || !spec.otherwise(line, context)) {
        reportUnknown(line.name, Object.keys(options), context.report);
        valid = false;
      }
    }
    for (const [keyword, option] of Object.entries(options)) {
      const value = option.read(linesByOption.get(keyword) ?? [], context);
      if (value === INVALID) valid = false;
      config[keyword] = value;
    }
    if (!valid) return INVALID;
    const complete = config as Config;
    if (spec.check !== undefined) {
      const before = errorCount(context.report);
      spec.check(complete, context.report, (option) => {
        const line = option === undefined ? undefined : places.get(option);
        return (line ?? occurrence).name.span;
      });
      if (errorCount(context.report) > before) return INVALID;
    }
    return complete;
  }

  return {
    parse(all, context) {
      const configs: Config[] = [];
      let valid = true;
      // What is wrong with a line that does not count is of no concern.
      const occurrences = spec.occurrences === "first" ? all.slice(0, 1) : all;
      for (const [index, occurrence] of occurrences.entries()) {
        if (index > 0 && (spec.occurrences ?? "once") === "once") {
          context.report.error(
            "PLUGIN_REPEATED",
            occurrence.name.span,
            "this plugin can only be used once per Server Block",
            {
              notes: [
                `the first '${occurrence.name.text}' is on line ${occurrences[0]?.name.span.line ?? 0}: merge the two`,
              ],
            },
          );
          return undefined;
        }
        const config = parseOne(occurrence, context);
        if (config === INVALID) valid = false;
        else configs.push(config);
      }
      if (!valid) return undefined;
      if (spec.occurrences === "last") warnOfEarlier(all, context.report);
      if (spec.occurrences === "first") warnOfLater(all, context.report);
      return spec.occurrences === "last" ? configs.slice(-1) : configs;
    },
    description: describe(args, options),
  };
}

/** Passes all occurrences of a directive to one instance, as a list. */
export function merged<T>(schema: ConfigSchema<T>): ConfigSchema<readonly T[]> {
  return {
    parse(occurrences, context) {
      const configs = schema.parse(occurrences, context);
      return configs === undefined ? undefined : [configs];
    },
    description: schema.description,
  };
}

/** A grammar of the plugin's own, over the same tokens and diagnostics. */
export function customDirective<T>(
  description: DirectiveDescription,
  parse: (occurrences: readonly Directive[], context: ConfigContext) => readonly T[] | undefined,
): ConfigSchema<T> {
  return { parse, description };
}

/** A directive without arguments and block, such as `loop`. */
export function bareDirective(): ConfigSchema<EmptyTable> {
  return directive({});
}

function readArguments(
  occurrence: Directive,
  args: ArgumentTable,
  context: ConfigContext,
  config: Record<string, unknown>,
): boolean {
  const cursor = new ArgumentCursor(occurrence.name, occurrence.args, context);
  for (const [name, argument] of Object.entries(args)) {
    const value = argument.read(cursor, name.toUpperCase());
    // The words behind an invalid one were not read, so they are not reported as superfluous.
    if (value === INVALID) return false;
    config[name] = value;
  }
  return cursor.finish();
}

function warnOfLater([first, ...others]: readonly Directive[], report: DiagnosticSink): void {
  for (const { name } of others) {
    const text = `'${name.text}' has no effect: only the first counts, on line ${first?.name.span.line}`;
    report.warning("PLUGIN_REPEATED", name.span, text);
  }
}

function warnOfEarlier(occurrences: readonly Directive[], report: DiagnosticSink): void {
  const last = occurrences.at(-1)?.name;
  for (const { name } of occurrences.slice(0, -1)) {
    const text = `'${name.text}' is repeated on line ${last?.span.line}: only the last counts`;
    report.warning("PLUGIN_REPEATED", name.span, text);
  }
}

function reportUnknown(keyword: Token, known: readonly string[], report: DiagnosticSink): void {
  const expected =
    known.length === 0 ? "no options: this directive takes none" : `one of ${known.join(", ")}`;
  report.error("PLUGIN_UNKNOWN_PROPERTY", keyword.span, `unknown property '${keyword.text}'`, {
    expected,
    suggestion: nearestWord(keyword.text, known),
  });
}

function errorCount(report: DiagnosticSink): number {
  return report.diagnostics.filter((diagnostic) => diagnostic.severity === "error").length;
}

function describe(args: ArgumentTable, options: OptionTable): DirectiveDescription {
  return {
    usage: usageOf(args),
    words: wordsOf(args),
    options: Object.entries(options).map(([name, { usage, words = [] }]) => ({ name, usage, words })),
  };
}
