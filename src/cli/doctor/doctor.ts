/** `portolan doctor`: what costs a cluster's DNS the most, who causes it, and the patch that mends it. */
import { readFileSync, writeFileSync } from "node:fs";
import type { Capture } from "../../console/doctor/capture.ts";
import { diagnose } from "../../console/doctor/diagnose.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { FlagError, flagLines, parseFlags } from "../flag-table.ts";
import { ConsoleClient } from "../live/console-client.ts";
import { faultOfFile } from "../readable-file.ts";
import { fitted, wantsColour } from "../terminal.ts";
import { captureLines, readCapture } from "./capture-file.ts";
import { collect } from "./collect.ts";
import { DOCTOR_FLAGS, type DoctorFlags, defaultDoctorFlags } from "./flags.ts";
import { readPodTemplate } from "./manifest.ts";
import { reportText } from "./report.ts";

const EXIT = { HEALTHY: 0, ILL: 1, CANNOT: 2 } as const;

/** Of a file with a capture or a manifest. */
const MAX_MEBIBYTES = 500;

/** @returns the exit code: 0 where nothing is wrong, 1 where something is, 2 where nothing could be looked at */
export async function doctor(argv: readonly string[]): Promise<number> {
  const usage = fitted(
    [
      "Usage: portolan doctor [FLAGS] [CAPTURE]",
      "",
      ...flagLines(DOCTOR_FLAGS),
      "",
      exitCodesLine("doctor"),
      "",
    ].join("\n"),
  );
  try {
    const flags = defaultDoctorFlags();
    const [file, ...others] = parseFlags(DOCTOR_FLAGS, flags, argv, true);
    if (others.length > 0)
      throw new FlagError(`doctor takes one capture, not also ${others.join(" ")}`, 2, false);
    if (flags.help) {
      process.stdout.write(usage);
      return EXIT.HEALTHY;
    }
    const capture = await readAll(flags, file);
    if (flags.record !== "") record(flags.record, capture);
    const diagnosis = diagnose(capture);
    process.stdout.write(
      flags.format === "json"
        ? `${JSON.stringify(diagnosis, undefined, 2)}\n`
        : reportText(diagnosis, wantsColour(process.stdout, process.env)),
    );
    return diagnosis.findings.length === 0 ? EXIT.HEALTHY : EXIT.ILL;
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    process.stderr.write(`${error.message}\n${error.showUsage ? usage : ""}`);
    return EXIT.CANNOT;
  }
}

async function readAll(flags: DoctorFlags, file: string | undefined): Promise<Capture> {
  const { manifest } = flags;
  if (manifest === "-" && file === "-")
    throw new FlagError("standard input is one of both: -manifest or the capture", 2, false);
  // A wrong manifest is told before anybody waits for ten seconds.
  const pod =
    manifest === ""
      ? undefined
      : readPodTemplate(await readText(manifest, `-manifest ${manifest}`), manifest);
  if (file !== undefined) {
    const capture = readCapture(await readText(file, file), file);
    return pod === undefined ? capture : { ...capture, pod };
  }
  return { ...(await collect(new ConsoleClient(flags), flags)), pod };
}

async function readText(file: string, shown: string): Promise<string> {
  if (file === "-") return readStandardInput(shown);
  const fault = faultOfFile(file, { maxMebibytes: MAX_MEBIBYTES });
  if (fault !== undefined) throw new FlagError(`${shown}: ${fault}`, 2, false);
  return readFileSync(file, "utf8");
}

/** @throws FlagError for more than a file may have */
async function readStandardInput(shown: string): Promise<string> {
  const chunks: Buffer[] = [];
  let octets = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    octets += chunk.length;
    if (octets > MAX_MEBIBYTES * 1024 * 1024)
      throw new FlagError(`${shown}: larger than ${MAX_MEBIBYTES} MiB`, 2, false);
  }
  return Buffer.concat(chunks).toString();
}

function record(file: string, capture: Capture): void {
  try {
    writeFileSync(file, `${captureLines(capture).join("\n")}\n`);
  } catch (error) {
    throw new FlagError(
      `-record ${file}: ${error instanceof Error ? error.message : String(error)}`,
      2,
      false,
    );
  }
}
