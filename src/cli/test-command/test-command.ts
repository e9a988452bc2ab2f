/** `portolan test`: unit tests for a DNS configuration. */
import { resolve } from "node:path";
import { describeNoText } from "../../corefile/host.ts";
import { nodeHost } from "../../corefile/node-host.ts";
import { ConfigurationError } from "../../server/configuration/configuration.ts";
import { thisMachine } from "../../server/configuration/machine.ts";
import { UnreadableCorefile } from "../corefile-source.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { printFlagError } from "../flag-errors.ts";
import { FlagError, type FlagRow, flagLines, parseFlags, switchRow } from "../flag-table.ts";
import { defaultPluginFlags, PLUGIN_FLAGS, type PluginFlags, pluginRegistry } from "../plugin-list.ts";
import { fitted, wantsColour } from "../terminal.ts";
import { changed, lookAt } from "./changes.ts";
import { type FileReport, hasPassed, hasProblem, REPORTS, type Report } from "./reports.ts";
import { runFile } from "./run-file.ts";
import { parseTestFile, TestFileError } from "./test-file.ts";

interface TestFlags extends PluginFlags {
  format: Report;
  watch: boolean;
  help: boolean;
}

const EXIT = { PASSED: 0, FAILED: 1, CANNOT: 2 } as const;

export const TEST_FLAGS: readonly FlagRow<TestFlags>[] = [
  {
    names: ["format"],
    value: "FORMAT",
    about: "human, tap or junit (default human)",
    choices: [...REPORTS.keys()],
    apply: (flags, value) => {
      const format = REPORTS.get(value);
      if (format === undefined)
        throw new FlagError(
          `unknown format "${value}": ${[...REPORTS.keys()].join(", ")}`,
          EXIT.CANNOT,
          true,
        );
      flags.format = format;
    },
  },
  ...PLUGIN_FLAGS,
  switchRow(["watch"], "run the tests again when a file that they depend on changes", (flags, on) => {
    flags.watch = on;
  }),
  switchRow(["help", "h"], "show this help", (flags, on) => {
    flags.help = on;
  }),
];

/** @returns the exit code: 0 all passed, 1 some failed, 2 some could not be run */
export async function test(argv: readonly string[]): Promise<number> {
  try {
    return await run(argv);
  } catch (error) {
    printFlagError(error, usage);
    return EXIT.CANNOT;
  }
}

async function run(argv: readonly string[]): Promise<number> {
  const format = REPORTS.get("human");
  if (format === undefined) throw new RangeError("there is no report for people");
  const flags: TestFlags = { ...defaultPluginFlags(), format, watch: false, help: false };
  const files = parseFlags(TEST_FLAGS, flags, argv, true);
  if (flags.help) {
    process.stdout.write(usage());
    return EXIT.PASSED;
  }
  if (files.length === 0) throw new FlagError("FILE is missing: which tests shall run?", EXIT.CANNOT, true);
  for (;;) {
    const used = new Set(files.map((file) => resolve(file)));
    const began = Date.now();
    const reports: FileReport[] = [];
    for (const file of files) reports.push(await testFile(file, flags, (path) => used.add(path)));
    // Taken before the report is printed, so before a reader can react to it.
    const { stamp, changedAt } = await lookAt(used);
    process.stdout.write(flags.format(reports, { colour: wantsColour(process.stdout, process.env) }));
    if (!flags.watch) return exitCodeOf(reports);
    // A file written while the tests ran may have been read before the write. A change time in the future does not count.
    const isOutdated = changedAt >= began && changedAt <= Date.now();
    if (!isOutdated) await changed(used, stamp);
    process.stdout.write("\n");
  }
}

function exitCodeOf(reports: readonly FileReport[]): number {
  if (reports.some(hasProblem)) return EXIT.CANNOT;
  const passed = reports.every((report) => !hasProblem(report) && report.cases.every(hasPassed));
  return passed ? EXIT.PASSED : EXIT.FAILED;
}

async function testFile(file: string, flags: PluginFlags, uses: (path: string) => void): Promise<FileReport> {
  try {
    return await runFile(parseTestFile(readTestFile(file), file), {
      host: nodeHost,
      machine: thisMachine(process.env),
      uses,
      registryFor: (corefile) => pluginRegistry(flags, corefile),
    });
  } catch (error) {
    if (error instanceof FlagError || !(error instanceof Error)) throw error;
    const isExpected =
      error instanceof TestFileError ||
      error instanceof ConfigurationError ||
      error instanceof UnreadableCorefile;
    return { file, problem: isExpected ? error.message : `cannot run this configuration: ${error.message}` };
  }
}

/** @throws TestFileError */
function readTestFile(file: string): string {
  const content = nodeHost.readFile(file);
  if (content.kind === "text") return content.text;
  throw new TestFileError(`cannot read ${file}: ${describeNoText(content)}`);
}

function usage(): string {
  const text = [
    "portolan test runs unit tests for a DNS configuration: a Corefile, fixtures, and queries with the expected answers.",
    "",
    "Usage: portolan test [-format FORMAT] [-watch] FILE...",
    "",
    'FILE is YAML: "portolan help test" describes it.',
    "",
    ...flagLines(TEST_FLAGS),
    "",
    "Tests query nothing outside of this process: upstreams are fakes on loopback, clusters are manifests, and the clock does not move unless a case moves it.",
    "",
    exitCodesLine("test"),
    "",
  ];
  return fitted(text.join("\n"));
}
