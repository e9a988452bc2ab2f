/** Observes a running server for a while through the API of its console. */
import { randomBytes } from "node:crypto";
import type { QueryRow } from "../../console/api-types.ts";
import type { CapturedServer, FailedName, ImpossibleName } from "../../console/doctor/capture.ts";
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
  const failed = new FailedQueries();
  const addRow = (row: QueryRow): void => {
    failed.add(row);
    add(row);
  };
  const answer = await client.get(`/api/v1/queries?rows=${RECENT}`);
  const recent = listMember(answer, "queries").filter(isQueryRow).reverse();
  for (const row of recent) addRow(row);
  try {
    if (flags.duration > 0) await follow(client, flags, recent.at(-1)?.time ?? 0, stop, { add, addRow });
    // Before the questions below, which count as exchanges with upstreams.
    add({ facts: await readFacts(client, flags.server) });
    if (flags.probe) {
      const [impossible, failures] = await Promise.all([askImpossible(client), askFailed(client, failed)]);
      if (impossible !== undefined) add({ impossible });
      for (const failure of failures) add({ failure });
    }
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
  { add, addRow }: { add: (line: CaptureLine) => void; addRow: (row: QueryRow) => void },
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
        if (row.time > known) addRow(factor === 1 ? row : { ...row, weight: row.weight * factor });
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
      refused: member(configuration, "refused"),
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
  const upstream = lastUpstream(answer);
  return {
    name,
    rcode: textMember(message, "rcode") || "-",
    answer: listMember(message, "answer").filter((record) => typeof record === "string"),
    plugin: textMember(answer, "plugin"),
    ...(upstream !== undefined && { upstream }),
  };
}

/** The upstream that an explanation names last. */
function lastUpstream(explanation: unknown): string | undefined {
  const named = listMember(explanation, "steps")
    .flatMap((step) => listMember(step, "notes"))
    .map((note) => textMember(member(note, "facts"), "upstream"))
    .filter((address) => address !== "");
  return named.at(-1);
}

/** Different failed questions that are kept, and how many are asked again: each of them may wait for an upstream. */
const MOST_FAILED = 500;
const MOST_ASKED = 3;

/** Counts failed queries by plugin and question. */
class FailedQueries {
  readonly #counts = new Map<string, { readonly row: QueryRow; count: number }>();

  add(row: QueryRow): void {
    if (row.rcode !== "SERVFAIL") return;
    const key = `${row.plugin} ${row.name.toLowerCase()} ${row.type}`;
    const known = this.#counts.get(key);
    if (known !== undefined) known.count += row.weight;
    else if (this.#counts.size < MOST_FAILED) this.#counts.set(key, { row, count: row.weight });
  }

  /** The most frequent question of each plugin. */
  ofPlugins(): QueryRow[] {
    const found = new Map<string, { readonly row: QueryRow; readonly count: number }>();
    for (const each of this.#counts.values())
      if (each.count > (found.get(each.row.plugin)?.count ?? 0)) found.set(each.row.plugin, each);
    return [...found.values()]
      .sort((one, other) => other.count - one.count)
      .slice(0, MOST_ASKED)
      .map(({ row }) => row);
  }
}

async function askFailed(client: ConsoleClient, failed: FailedQueries): Promise<FailedName[]> {
  const asked = failed.ofPlugins().map(async ({ name, type, plugin, client: from, transport, listener }) => {
    let answer: unknown;
    try {
      const overTcp = transport === "tcp" ? { transport } : {};
      answer = await client.post("/api/v1/explain", { name, type, client: from, listener, ...overTcp });
    } catch (error) {
      if (error instanceof FlagError) return [];
      throw error;
    }
    const rcode = textMember(member(answer, "message"), "rcode") || "-";
    return [
      { name, type, plugin, rcode, reason: rcode === "SERVFAIL" || rcode === "-" ? reasonIn(answer) : "" },
    ];
  });
  return (await Promise.all(asked)).flat();
}

/** The error of the plugin that failed; without one, the last note of the trace. */
function reasonIn(explanation: unknown): string {
  const error = textMember(explanation, "error");
  if (error !== "") return error;
  const notes = listMember(explanation, "steps").flatMap((step) => listMember(step, "notes"));
  return notes.map((note) => textMember(note, "text")).at(-1) ?? "";
}
