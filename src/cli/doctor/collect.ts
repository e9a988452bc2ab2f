/** Observes a running server for a while through the API of its console. */
import { randomBytes } from "node:crypto";
import type { CapturedServer, ImpossibleName } from "../../console/doctor/capture.ts";
import { listMember, member, textMember } from "../../kubernetes/objects/json.ts";
import { FlagError } from "../flag-table.ts";
import { type ConsoleClient, ConsoleFault } from "../live/console-client.ts";
import { steadyEvents } from "../live/steady-events.ts";
import { isQueryRow } from "../live/tail.ts";
import { type CaptureLine, isFacts } from "./capture-file.ts";
import type { DoctorFlags } from "./flags.ts";

/** Rows that the console sends at once. */
const RECENT = 1_000;

/**
 * @param stop ends the observation early
 * @returns the reason if the server went away, `undefined` if it was there to the end
 * @throws FlagError
 */
export async function collect(
  client: ConsoleClient,
  flags: Pick<DoctorFlags, "server" | "duration" | "reconnect" | "probe">,
  stop: AbortSignal,
  add: (line: CaptureLine) => void,
): Promise<string | undefined> {
  add({ facts: await readFacts(client, flags.server) });
  const answer = await client.get(`/api/v1/queries?rows=${RECENT}`);
  const recent = listMember(answer, "queries").filter(isQueryRow).reverse();
  for (const row of recent) add(row);
  try {
    if (flags.duration > 0) await follow(client, flags, recent.at(-1)?.time ?? 0, stop, add);
    const impossible = flags.probe ? await askImpossible(client) : undefined;
    if (impossible !== undefined) add({ impossible });
    add({ facts: await readFacts(client, flags.server) });
  } catch (error) {
    if (error instanceof ConsoleFault && error.mayPass) return error.message;
    throw error;
  }
  return undefined;
}

/** @param known time of the last row that was received */
async function follow(
  client: ConsoleClient,
  { server, duration, reconnect }: Pick<DoctorFlags, "server" | "duration" | "reconnect">,
  known: number,
  stop: AbortSignal,
  add: (line: CaptureLine) => void,
): Promise<void> {
  const signal = AbortSignal.any([AbortSignal.timeout(duration), stop]);
  const events = steadyEvents(client, "/api/v1/events?streams=queries", { signal, patience: reconnect });
  for await (const event of events) {
    // A restarted server counts from 0.
    if (event === "again") add({ facts: await readFacts(client, server) });
    else if (event.name === "queries") {
      const told = listMember(event.data, "rows").filter(isQueryRow);
      const leftOut = Number(member(event.data, "leftOut")) || 0;
      // Received rows stand for the ones that were left out.
      const factor = (told.length + leftOut) / Math.max(1, told.length);
      for (const row of told)
        if (row.time > known) add(factor === 1 ? row : { ...row, weight: row.weight * factor });
    }
  }
}

async function readFacts(client: ConsoleClient, server: string): Promise<CapturedServer> {
  const [now, machine, cache, configuration] = await Promise.all(
    ["now", "machine", "cache", "configuration"].map((path) => client.get(`/api/v1/${path}`)),
  );
  const { history: _history, ...short } = Object(now);
  const facts: unknown = {
    now: short,
    machine,
    caches: member(cache, "caches"),
    configuration: {
      file: textMember(configuration, "file"),
      text: textMember(configuration, "text"),
      blocks: member(configuration, "blocks"),
    },
  };
  if (isFacts(facts)) return facts;
  throw new FlagError(`-server ${server}: answers in the format of another version of Portolan`, 2, false);
}

/** Nothing exists below `invalid.` (RFC 6761 section 6.4), and a random name is in no cache. */
async function askImpossible(client: ConsoleClient): Promise<ImpossibleName | undefined> {
  const name = `portolan-doctor-${randomBytes(6).toString("hex")}.invalid.`;
  let answer: unknown;
  try {
    answer = await client.post("/api/v1/explain", { name, type: "A" });
  } catch (error) {
    // Other explanations are running, or no listener takes the question. The rest can still be judged.
    if (error instanceof FlagError) return undefined;
    throw error;
  }
  const message = member(answer, "message");
  return {
    name,
    rcode: textMember(message, "rcode") || "-",
    answer: listMember(message, "answer").filter((record) => typeof record === "string"),
    plugin: textMember(answer, "plugin"),
  };
}
