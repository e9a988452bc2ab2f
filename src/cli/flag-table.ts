/**
 * Command lines as tables of flags: one and two dashes are alike, as are `-flag value` and `-flag=value`
 * (docs/spec/coredns-behaviour.md#command-line).
 */
import { LOG_FORMATS, type LogFormatName } from "../lib/logging/log-format.ts";

/** An invalid command line. */
export class FlagError extends Error {
  override readonly name = "FlagError";
  readonly exitCode: number;
  /** Whether to show the usage as well. */
  readonly showUsage: boolean;

  constructor(message: string, exitCode: number, showUsage: boolean) {
    super(message);
    this.exitCode = exitCode;
    this.showUsage = showUsage;
  }
}

/** Describes a flag. */
export interface FlagDescription {
  readonly names: readonly string[];
  /** Placeholder of the value in the usage; `undefined` for a switch. */
  readonly value: string | undefined;
  readonly about: string;
  /** All valid values, if they can be listed. */
  readonly choices?: readonly string[];
}

export interface FlagRow<F> extends FlagDescription {
  /** @throws FlagError */
  apply(flags: F, value: string): void;
}

/** A switch: alone it is on, `-name=false` is off. */
export function switchRow<F>(
  names: readonly string[],
  about: string,
  set: (flags: F, on: boolean) => void,
): FlagRow<F> {
  return { names, value: undefined, about, apply: (flags, value) => set(flags, isTrue(value)) };
}

/** A flag with a value. */
export function valueRow<F>(
  names: string | readonly string[],
  value: string,
  about: string,
  set: (flags: F, value: string) => void,
): FlagRow<F> {
  return { names: typeof names === "string" ? [names] : names, value, about, apply: set };
}

/** A flag with one of a few words. */
export function choiceRow<F, C extends string>(
  name: string,
  choices: readonly C[],
  about: string,
  set: (flags: F, value: C) => void,
): FlagRow<F> {
  const apply = (flags: F, value: string): void => {
    const choice = choices.find((known) => known === value);
    if (choice === undefined)
      throw new FlagError(`unknown ${name} "${value}": ${choices.join(", ")}`, 2, true);
    set(flags, choice);
  };
  return { names: [name], value: name.toUpperCase(), about, choices, apply };
}

/** The log flags of all commands that serve. */
export interface LogFlags {
  logFormat: LogFormatName;
}

/** The format of the log, in the words of CoreDNS. */
export function logFormatRow<F extends LogFlags>(): FlagRow<F> {
  const apply = (flags: F, value: string): void => {
    const format = LOG_FORMATS.find((known) => known === value);
    if (format === undefined)
      throw new FlagError(`unknown log format ${JSON.stringify(value)}: expected text or json`, 1, false);
    flags.logFormat = format;
  };
  return {
    names: ["log-format"],
    value: "FORMAT",
    about: "format of the log: text, or json for an object a line (default text)",
    choices: LOG_FORMATS,
    apply,
  };
}

export function helpRow<F extends { help: boolean }>(): FlagRow<F> {
  return switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  });
}

/**
 * Applies each flag of `argv` to `flags`. As in Go's programs, the first word ends the flags; with `mixed`, flags may follow it.
 * @returns the words that are not flags; `-` is a word
 * @throws FlagError
 */
export function parseFlags<F>(
  rows: readonly FlagRow<F>[],
  flags: F,
  argv: readonly string[],
  mixed: boolean,
): string[] {
  const words: string[] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index] ?? "";
    if (argument === "--") return [...words, ...argv.slice(index + 1)];
    if (!argument.startsWith("-") || argument === "-") {
      if (!mixed) return argv.slice(index);
      words.push(argument);
      continue;
    }
    const [name = "", ...values] = argument.replace(/^--?/, "").split("=");
    const row = rows.find(({ names }) => names.includes(name));
    if (row === undefined) throw new FlagError(`flag provided but not defined: -${name}`, 2, true);
    let value = values.length > 0 ? values.join("=") : undefined;
    if (row.value !== undefined && value === undefined) {
      value = argv[++index];
      if (value === undefined) throw new FlagError(`flag needs an argument: -${name}`, 2, true);
    }
    row.apply(flags, value ?? "true");
  }
  return words;
}

/** One line per flag. */
export function flagLines(rows: readonly FlagDescription[]): string[] {
  return rows.map(({ names, value, about }) => {
    const spelled = names.map((name) => `-${name}`).join(", ");
    return `  ${(value === undefined ? spelled : `${spelled} ${value}`).padEnd(25)}  ${about}`;
  });
}

/** @throws FlagError */
export function parsePort(name: string, value: string): number {
  const port = /^\d{1,5}$/.test(value) ? Number(value) : Number.NaN;
  if (port <= 65535) return port;
  throw new FlagError(`invalid value "${value}" for flag -${name}: a port is a number up to 65535`, 2, true);
}

function isTrue(value: string): boolean {
  if (["1", "t", "true", "T", "TRUE", "True"].includes(value)) return true;
  if (["0", "f", "false", "F", "FALSE", "False"].includes(value)) return false;
  throw new FlagError(`invalid boolean value "${value}"`, 2, true);
}
