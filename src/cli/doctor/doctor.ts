/** `portolan doctor`: finds the most expensive DNS problems of a cluster, their causes, and the patches that fix them. */
import { createReadStream, readFileSync } from "node:fs";
import type { Capture } from "../../console/doctor/capture.ts";
import { shellWord } from "../../console/doctor/command-words.ts";
import { diagnose } from "../../console/doctor/diagnose.ts";
import type { CommandFlags } from "../../console/doctor/finding.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { boundHeap, heapBounds } from "../../runtime/heap-bounds.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { printFlagError } from "../flag-errors.ts";
import { FlagError, flagLines, parseFlags } from "../flag-table.ts";
import { ConsoleClient } from "../live/console-client.ts";
import { faultOfFile } from "../readable-file.ts";
import { fitted, wantsColour } from "../terminal.ts";
import {
  CaptureBuilder,
  type CaptureLine,
  CaptureRecorder,
  isSameFile,
  readCapture,
} from "./capture-file.ts";
import { collect } from "./collect.ts";
import { DOCTOR_FLAGS, type DoctorFlags, defaultDoctorFlags } from "./flags.ts";
import { readPodTemplate } from "./manifest.ts";
import { reportText } from "./report.ts";

const EXIT = { HEALTHY: 0, ILL: 1, CANNOT: 2 } as const;

/** Mebibytes. */
const MAX_MANIFEST = 50;
/** Bytes of a capture read at a time. */
const PORTION = 256 * 1024;

/** @returns the exit code: 0 nothing is wrong, 1 something is wrong, 2 nothing could be examined */
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
    const { capture, lost } = await readAll(flags, file);
    if (lost !== undefined) process.stderr.write(`${lost}\n`);
    const diagnosis = file === undefined ? diagnose(capture, commandFlags(flags)) : diagnose(capture);
    process.stdout.write(
      flags.format === "json"
        ? `${JSON.stringify(diagnosis, undefined, 2)}\n`
        : reportText(diagnosis, wantsColour(process.stdout, process.env)),
    );
    if (diagnosis.findings.length > 0) return EXIT.ILL;
    return lost === undefined ? EXIT.HEALTHY : EXIT.CANNOT;
  } catch (error) {
    printFlagError(error, usage);
    return EXIT.CANNOT;
  }
}

function commandFlags({ server, tokenFile, duration }: DoctorFlags): CommandFlags {
  const usual = defaultDoctorFlags();
  const token = tokenFile === "" ? "" : ` -token-file ${shellWord(tokenFile)}`;
  const where = `-server ${shellWord(server)}${token}`;
  const isUsual = server === usual.server && token === "";
  const time = duration === usual.duration ? [] : [`-for ${formatGoDuration(duration)}`];
  return { server: where, doctor: [...(isUsual ? [] : [where]), ...time].join(" ") };
}

interface Looked {
  readonly capture: Capture;
  /** The reason why the server went away, if it did. */
  readonly lost?: string | undefined;
}

async function readAll(flags: DoctorFlags, file: string | undefined): Promise<Looked> {
  const { manifest } = flags;
  if (manifest === "-" && file === "-")
    throw new FlagError("standard input can be only one of both: -manifest or the capture", 2, false);
  if (file !== undefined && flags.record !== "" && isSameFile(file, flags.record))
    throw new FlagError(`-record ${flags.record}: that is the capture being read`, 2, false);
  // Read first, so that a wrong manifest is reported before the ten seconds of listening.
  const pod = manifest === "" ? undefined : readPodTemplate(await readManifest(manifest), manifest);
  const client = file === undefined ? new ConsoleClient(flags) : undefined;
  // Millions of queries pass through, and almost nothing of them is kept.
  boundHeap(heapBounds(), new SystemClock());
  const builder = new CaptureBuilder();
  const recorder = flags.record === "" ? undefined : new CaptureRecorder(flags.record);
  const add = (line: CaptureLine): void => {
    builder.add(line);
    recorder?.add(line);
  };
  let lost: string | undefined;
  try {
    if (client !== undefined) lost = await untilInterrupted((stop) => collect(client, flags, stop, add));
    else if (file !== undefined) await readCapture(openCapture(file), file, add);
    if (pod !== undefined) add({ pod });
  } finally {
    recorder?.close();
  }
  if (builder.isEmpty) throw new FlagError(`${file}: has no queries and no facts about a server`, 2, false);
  return { capture: builder.capture(), lost };
}

/** The first Ctrl-C ends the observation early. The report then covers what was seen. */
async function untilInterrupted<T>(run: (stop: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const interrupt = (): void => stop.abort();
  process.once("SIGINT", interrupt);
  try {
    return await run(stop.signal);
  } finally {
    process.off("SIGINT", interrupt);
  }
}

/** @throws FlagError */
function openCapture(file: string): AsyncIterable<Uint8Array> {
  if (file === "-") return process.stdin;
  const fault = faultOfFile(file, { maxMebibytes: Number.POSITIVE_INFINITY });
  if (fault !== undefined) throw new FlagError(`${file}: ${fault}`, 2, false);
  return createReadStream(file, { highWaterMark: PORTION });
}

/** @throws FlagError */
async function readManifest(file: string): Promise<string> {
  const shown = `-manifest ${file}`;
  if (file !== "-") {
    const fault = faultOfFile(file, { maxMebibytes: MAX_MANIFEST });
    if (fault !== undefined) throw new FlagError(`${shown}: ${fault}`, 2, false);
    return readFileSync(file, "utf8");
  }
  const chunks: Buffer[] = [];
  let octets = 0;
  for await (const chunk of process.stdin) {
    chunks.push(Buffer.from(chunk));
    octets += chunk.length;
    if (octets > MAX_MANIFEST * 1024 * 1024)
      throw new FlagError(`${shown}: larger than ${MAX_MANIFEST} MiB`, 2, false);
  }
  return Buffer.concat(chunks).toString();
}
