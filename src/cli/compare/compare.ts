/** `portolan compare`: asks two servers the same questions and reports what differs, before one takes the place of the other. */
import { countOf } from "../../lib/text/count-of.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { systemRandom } from "../../server/configuration/machine.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { printFlagError } from "../flag-errors.ts";
import { FlagError, flagLines, parseFlags } from "../flag-table.ts";
import { fitted, wantsColour } from "../terminal.ts";
import { AskedServer } from "./asking.ts";
import { compareServers, SilentServer } from "./comparison.ts";
import { COMPARE_FLAGS, type CompareFlags, defaultCompareFlags, serverAddress } from "./flags.ts";
import { Questions, readQuestions } from "./questions.ts";
import { reportText } from "./report.ts";
import { addZoneNames } from "./zone-names.ts";

const EXIT = { SAME: 0, DIFFERENT: 1, CANNOT: 2 } as const;

/** @returns the exit code: 0 the same answers, 1 different ones, 2 they could not be compared */
export async function compare(argv: readonly string[]): Promise<number> {
  const usage = fitted(
    [
      "Usage: portolan compare OLD NEW -queries FILE",
      "       portolan compare OLD NEW -zone ZONE",
      "",
      ...flagLines(COMPARE_FLAGS),
      "",
      exitCodesLine("compare"),
      "",
    ].join("\n"),
  );
  try {
    const flags = defaultCompareFlags();
    const words = parseFlags(COMPARE_FLAGS, flags, argv, true);
    if (flags.help) {
      process.stdout.write(usage);
      return EXIT.SAME;
    }
    return await run(flags, words);
  } catch (error) {
    if (error instanceof SilentServer) {
      process.stderr.write(`${error.message}\n`);
      return EXIT.CANNOT;
    }
    printFlagError(error, usage);
    return EXIT.CANNOT;
  }
}

async function run(flags: CompareFlags, words: readonly string[]): Promise<number> {
  const [old, now, ...others] = [...flags.servers, ...words];
  if (old === undefined || now === undefined || others.length > 0)
    throw new FlagError("compare takes two servers: OLD and NEW", 2, true);
  if (flags.queries.length + flags.zones.length === 0)
    throw new FlagError("compare needs questions: -queries FILE or -zone ZONE", 2, true);
  const clock = new SystemClock({ keepAlive: true });
  const random = systemRandom();
  const { timeout, strict, concurrency } = flags;
  const [oldAddress, newAddress] = [serverAddress(old), serverAddress(now)];
  const questions = new Questions();
  for (const file of flags.queries) await readQuestions(file, questions);
  for (const zone of flags.zones)
    await addZoneNames(
      zone,
      { remote: oldAddress, clock, id: random.unpredictable() & 0xffff, timeout },
      questions,
    );
  const { all, leftOut, otherLines } = questions;
  if (otherLines > 0) note(`${countOf(otherLines, "line")} without a question`);
  if (leftOut > 0)
    note(`${countOf(leftOut, "query", "queries")} left out: transfers, and classes other than IN`);
  if (all.length === 0) throw new FlagError("no questions to ask", 2, false);
  using oldServer = new AskedServer({ address: oldAddress, clock, random, timeout });
  using newServer = new AskedServer({ address: newAddress, clock, random, timeout });
  const comparison = await compareServers(all, { old: oldServer, now: newServer, strict, concurrency });
  process.stdout.write(
    flags.format === "json"
      ? `${JSON.stringify({ old: oldAddress.text, new: newAddress.text, ...comparison }, undefined, 2)}\n`
      : reportText(comparison, wantsColour(process.stdout, process.env)),
  );
  return comparison.different > 0 ? EXIT.DIFFERENT : EXIT.SAME;
}

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}
