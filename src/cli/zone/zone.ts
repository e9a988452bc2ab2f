/** `portolan zone`: checks, prints and compares zone files. */
import { basename } from "node:path";
import { Name } from "../../dns/name.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import { formatZoneTextFault, type ZoneTextFault } from "../../dns/zone-text/fault.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { TurnShare } from "../../lib/time/turn-share.ts";
import { compareZones } from "../../zones/changes/zone-journal.ts";
import { soaRecord } from "../../zones/data/zone-transfer.ts";
import { type ReadZone, readZoneFile, ZoneFileError } from "../../zones/files/parsed-file.ts";
import { checkZone } from "../../zones/files/zone-checks.ts";
import { zoneLines } from "../../zones/files/zone-printer.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { fitted } from "../terminal.ts";
import { absolute, zoneApex } from "./zone-apex.ts";
import { SHELL_FILES } from "./zone-text-files.ts";

/** The codes of named-checkzone and diff. */
const EXIT = { GOOD: 0, FAULTY: 1, CANNOT: 2 } as const;

const USAGE = `Usage: portolan zone check FILE [ORIGIN]  finds all faults of a zone file
       portolan zone print FILE [ORIGIN]  prints it in canonical order, one record a line
       portolan zone diff A B [ORIGIN]    compares two files, record by record

FILE can be - for standard input. Without ORIGIN, the owner of the file's SOA record is the zone. If that is a relative
name such as @, the name of the file completes it: db.example.org, example.org.zone, example.org.db or example.org.

${exitCodesLine("zone")}
`;

/** Beginnings of warnings that do not change the exit code, as in named-checkzone. */
const TOLERATED = ["ignored: the name does not lie in ", "a TTL above "] as const;

/** Milliseconds of an event-loop turn. Only signals wait for the loop. */
const SHARE = 20;

/** The output of the command. */
export interface Output {
  /** Resolves when there is room for more. */
  print(text: string): Promise<void>;
  complain(text: string): void;
}

const TERMINAL: Output = {
  async print(text) {
    const { promise, resolve } = Promise.withResolvers<void>();
    // A reader that goes away is not an error; `Printing` handles all others.
    if (!process.stdout.write(text, () => resolve())) await promise;
  },
  complain: (text) => void process.stderr.write(text),
};

/** @returns the exit code */
export function zoneCommand(argv: readonly string[]): Promise<number> {
  return zone(argv, TERMINAL);
}

/** @returns the exit code */
export async function zone(argv: readonly string[], output: Output): Promise<number> {
  const [action, ...words] = argv;
  if (argv.some((word) => /^--?h(elp)?$/.test(word))) {
    await output.print(fitted(USAGE));
    return EXIT.GOOD;
  }
  if (action === "check" && (words.length === 1 || words.length === 2))
    return check(output, words[0] ?? "", words[1]);
  if (action === "print" && (words.length === 1 || words.length === 2))
    return print(output, words[0] ?? "", words[1]);
  if (action === "diff" && (words.length === 2 || words.length === 3))
    return diff(output, words[0] ?? "", words[1] ?? "", words[2]);
  output.complain(fitted(USAGE));
  return EXIT.CANNOT;
}

async function check(output: Output, file: string, origin: string | undefined): Promise<number> {
  const read = await load(output, file, origin, (text) => output.print(text));
  if (typeof read === "number") return read;
  const apex = read.zone.apex.toString();
  // A server accepts unusual records. named-checkzone refuses them, except for these.
  const strange = read.warnings.filter(({ reason }) => !TOLERATED.some((start) => reason.startsWith(start)));
  const problems = checkZone(read.zone);
  for (const warning of read.warnings) {
    const isError = strange.includes(warning);
    await output.print(`${formatZoneTextFault({ ...warning, severity: isError ? "error" : "warning" })}\n`);
  }
  for (const { severity, text } of problems)
    await output.print(`${file}: ${severity === "warning" ? "warning: " : ""}${text}\n`);
  if (strange.length > 0 || problems.some(({ severity }) => severity === "error")) {
    await output.print(`zone ${apex} has errors\n`);
    return EXIT.FAULTY;
  }
  await output.print(`zone ${apex} serial ${read.zone.serial}, ${read.zone.recordCount} records: OK\n`);
  return EXIT.GOOD;
}

async function print(output: Output, file: string, origin: string | undefined): Promise<number> {
  const read = await load(output, file, origin, complaints(output));
  if (typeof read === "number") return read;
  complain(output, read.warnings);
  for await (const lines of zoneLines(read.zone)) {
    await output.print(lines);
  }
  return EXIT.GOOD;
}

async function diff(
  output: Output,
  first: string,
  second: string,
  origin: string | undefined,
): Promise<number> {
  const before = await load(output, first, origin, complaints(output));
  const apex = typeof before === "number" ? undefined : before.zone.apex.toString();
  const after = await load(output, second, origin ?? apex, complaints(output));
  if (typeof before === "number" || typeof after === "number") return EXIT.CANNOT;
  for (const { warnings } of [before, after]) complain(output, warnings);
  const compared = await compareZones(
    before.zone,
    after.zone,
    Number.POSITIVE_INFINITY,
    async () => undefined,
  );
  const [oldSoa, newSoa] = [formatRecord(soaRecord(before.zone)), formatRecord(soaRecord(after.zone))];
  const removed = Array.from(compared?.removed.records() ?? [], formatRecord);
  const added = Array.from(compared?.added.records() ?? [], formatRecord);
  if (oldSoa !== newSoa) {
    removed.unshift(oldSoa);
    added.unshift(newSoa);
  }
  for (const line of removed) await output.print(`- ${line}\n`);
  for (const line of added) await output.print(`+ ${line}\n`);
  return removed.length + added.length === 0 ? EXIT.GOOD : EXIT.FAULTY;
}

/** Reports records that were left out, and other differences between file and output. */
function complain(output: Output, warnings: readonly ZoneTextFault[]): void {
  for (const warning of warnings) output.complain(`${formatZoneTextFault(warning)}\n`);
}

/** Writes faults to standard error, for commands whose standard output is the zone. */
function complaints(output: Output): (text: string) => Promise<void> {
  return async (text) => output.complain(text);
}

/**
 * @param tell receives the faults of an invalid zone file
 * @returns the exit code for such a file
 */
async function load(
  output: Output,
  file: string,
  originText: string | undefined,
  tell: (text: string) => Promise<void>,
): Promise<ReadZone | number> {
  const pause = new TurnShare(new SystemClock({ keepAlive: true }), SHARE).rest;
  try {
    const origin =
      originText === undefined
        ? await zoneApex(file, SHELL_FILES, pause)
        : Name.tryParse(absolute(originText));
    if (origin === undefined) {
      output.complain(`"${originText ?? basename(file)}" names no origin: add one after the file\n`);
      return EXIT.CANNOT;
    }
    return await readZoneFile({ file, origin, files: SHELL_FILES, pause });
  } catch (error) {
    if (error instanceof ZoneFileError) {
      for (const fault of error.faults) await tell(`${formatZoneTextFault(fault)}\n`);
      await tell(`zone ${error.origin} has errors\n`);
      return EXIT.FAULTY;
    }
    output.complain(`cannot read ${file}: ${fileFault(error)}\n`);
    return EXIT.CANNOT;
  }
}
