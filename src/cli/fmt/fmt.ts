/** `portolan fmt`: formats Corefiles. */
import { existsSync, writeFileSync } from "node:fs";
import { createTwoFilesPatch } from "diff";
import { formatDiagnostic } from "../../corefile/diagnostic.ts";
import { formatCorefile } from "../../corefile/format.ts";
import { syntaxErrors } from "../../corefile/syntax-errors.ts";
import { countOf } from "../../lib/text/count-of.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { CorefileSource } from "../../server/configuration/configuration.ts";
import { isPlainCorefile } from "../check/given-files.ts";
import { isStandardInput, readCorefile, readStandardInput, UnreadableCorefile } from "../corefile-source.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { printFlagError } from "../flag-errors.ts";
import { FlagError, type FlagRow, flagLines, helpRow, parseFlags, switchRow } from "../flag-table.ts";
import { fitted, paint, wantsColour } from "../terminal.ts";

interface FmtFlags {
  check: boolean;
  diff: boolean;
  write: boolean;
  help: boolean;
}

const EXIT = { DONE: 0, UNFORMATTED: 1, CANNOT: 2 } as const;

export const FMT_FLAGS: readonly FlagRow<FmtFlags>[] = [
  switchRow(
    ["check"],
    "print the names of unformatted files, change nothing, and end with 1 if there are any",
    (flags, on) => {
      flags.check = on;
    },
  ),
  switchRow(["diff"], "print what formatting would change, and change nothing", (flags, on) => {
    flags.diff = on;
  }),
  switchRow(
    ["write", "w"],
    "write the result to the file, and print the names of changed files",
    (flags, on) => {
      flags.write = on;
    },
  ),
  helpRow(),
];

/** @returns the exit code: 0 done, 1 with `-check` if a file is not formatted, 2 if one cannot be formatted */
export async function fmt(argv: readonly string[]): Promise<number> {
  try {
    return await run(argv);
  } catch (error) {
    printFlagError(error, usage);
    return EXIT.CANNOT;
  }
}

async function run(argv: readonly string[]): Promise<number> {
  const flags: FmtFlags = { check: false, diff: false, write: false, help: false };
  const words = parseFlags(FMT_FLAGS, flags, argv, true);
  if (flags.help) {
    process.stdout.write(usage());
    return EXIT.DONE;
  }
  if (flags.write && (flags.check || flags.diff))
    throw new FlagError(
      `-write changes files and -${flags.check ? "check" : "diff"} does not: choose one`,
      EXIT.CANNOT,
      false,
    );
  if (flags.write && words.some(isPiped))
    throw new FlagError("-write needs a file: standard input cannot be written", EXIT.CANNOT, false);
  let code: number = EXIT.DONE;
  for (const word of words.length > 0 ? words : [defaultFile()])
    code = Math.max(code, await formatOne(word, flags));
  return code;
}

async function formatOne(word: string, flags: FmtFlags): Promise<number> {
  let source: CorefileSource;
  try {
    source = isPiped(word) ? readStandardInput() : readCorefile(word);
  } catch (error) {
    if (!(error instanceof UnreadableCorefile)) throw error;
    process.stderr.write(`${error.message}\n`);
    return EXIT.CANNOT;
  }
  if (!(await isPlainCorefile(source))) {
    process.stderr.write(
      `${shown(source.file)}: YAML, not a Corefile: fmt formats only files that hold a Corefile alone\n`,
    );
    return EXIT.CANNOT;
  }
  const errors = syntaxErrors(source.text, source.file);
  if (errors.length > 0) {
    for (const error of errors) process.stderr.write(`${formatDiagnostic(error, source.text)}\n`);
    process.stderr.write(`${shown(source.file)}: not formatted: ${countOf(errors.length, "error")}\n`);
    return EXIT.CANNOT;
  }
  return report(source, formatCorefile(source.text), flags);
}

function report({ file, text }: CorefileSource, formatted: string, flags: FmtFlags): number {
  const isFormatted = text === formatted;
  if (flags.diff && !isFormatted) process.stdout.write(differences(file, text, formatted));
  else if (flags.check && !isFormatted) process.stdout.write(`${shown(file)}\n`);
  if (flags.check) return isFormatted ? EXIT.DONE : EXIT.UNFORMATTED;
  if (flags.diff) return EXIT.DONE;
  if (!flags.write) {
    process.stdout.write(formatted);
    return EXIT.DONE;
  }
  if (isFormatted) return EXIT.DONE;
  try {
    // In place: the file keeps its owner and permissions, and a symbolic link stays one.
    writeFileSync(file, formatted);
  } catch (error) {
    process.stderr.write(`cannot write ${shown(file)}: ${messageOf(error)}\n`);
    return EXIT.CANNOT;
  }
  process.stdout.write(`${shown(file)}\n`);
  return EXIT.DONE;
}

/** A unified diff. `patch` and `git apply` read it. */
function differences(file: string, text: string, formatted: string): string {
  // Without the line "Index:", and without the tab in front of a time that is not there.
  const patch = createTwoFilesPatch(file, file, text, formatted)
    .replace(/^Index: .*\n=+\n/, "")
    .replace(/^(--- .*)\t\n(\+\+\+ .*)\t\n/, "$1\n$2\n");
  if (!wantsColour(process.stdout, process.env)) return patch;
  return patch.replaceAll(/^[-+@].*/gm, (line) => {
    if (/^(---|\+\+\+) /.test(line)) return paint(line, "bold");
    return paint(line, line.startsWith("+") ? "cyan" : line.startsWith("-") ? "red" : "yellow");
  });
}

function isPiped(word: string): boolean {
  return word === "-" || isStandardInput(word);
}

function shown(file: string): string {
  return JSON.stringify(file).slice(1, -1);
}

function defaultFile(): string {
  if (existsSync("Corefile")) return "Corefile";
  throw new FlagError("there is no Corefile here: name the file to format", EXIT.CANNOT, true);
}

function usage(): string {
  const text = [
    "portolan fmt formats Corefiles: one directive per line, four spaces per level. Comments stay, and so does the meaning.",
    "",
    "Usage: portolan fmt [-check] [-diff] [-write] [FILE...]",
    "",
    "Without a flag it prints the result. Without FILE it formats ./Corefile; - is standard input.",
    "",
    ...flagLines(FMT_FLAGS),
    "",
    exitCodesLine("fmt"),
    "",
  ];
  return fitted(text.join("\n"));
}
