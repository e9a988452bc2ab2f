/** Looks at a running server for a while, by the API of its console. */
import { randomBytes } from "node:crypto";
import type { QueryRow } from "../../console/api-types.ts";
import type { Capture, ImpossibleName, ServerFacts } from "../../console/doctor/capture.ts";
import { listMember, member, textMember } from "../../kubernetes/objects/json.ts";
import { FlagError } from "../flag-table.ts";
import type { ConsoleClient } from "../live/console-client.ts";
import { isQueryRow } from "../live/tail.ts";
import { isFacts } from "./capture-file.ts";
import type { DoctorFlags } from "./flags.ts";

/** Rows that the console tells at once, and that are kept in all. */
const RECENT = 1_000;
const MOST_ROWS = 500_000;

/** @throws FlagError */
export async function collect(
  client: ConsoleClient,
  { server, duration, probe }: Pick<DoctorFlags, "server" | "duration" | "probe">,
): Promise<Omit<Capture, "pod">> {
  const first = await readFacts(client, server);
  const recent = listMember(await client.get(`/api/v1/queries?rows=${RECENT}`), "queries").filter(isQueryRow);
  const rows: QueryRow[] = recent.reverse();
  if (duration > 0) await follow(client, duration, rows);
  const impossible = probe ? await askImpossible(client) : undefined;
  return { rows, first, last: await readFacts(client, server), impossible };
}

async function follow(client: ConsoleClient, duration: number, rows: QueryRow[]): Promise<void> {
  const signal = AbortSignal.timeout(duration);
  const known = rows.at(-1)?.time ?? 0;
  for await (const { name, data } of client.events("/api/v1/events?streams=queries", signal)) {
    if (name !== "queries") continue;
    const told = listMember(data, "rows").filter(isQueryRow);
    const leftOut = Number(member(data, "leftOut")) || 0;
    // Those that were told stand for those that were not.
    const factor = (told.length + leftOut) / Math.max(1, told.length);
    for (const row of told)
      if (row.time > known && rows.length < MOST_ROWS)
        rows.push(factor === 1 ? row : { ...row, weight: row.weight * factor });
  }
}

async function readFacts(client: ConsoleClient, server: string): Promise<ServerFacts> {
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
  throw new FlagError(`-server ${server}: answers in words of another version of Portolan`, 2, false);
}

/** Below `invalid.` nothing exists (RFC 6761 section 6.4), and a name that nobody has asked for is in no cache. */
async function askImpossible(client: ConsoleClient): Promise<ImpossibleName | undefined> {
  const name = `portolan-doctor-${randomBytes(6).toString("hex")}.invalid.`;
  let answer: unknown;
  try {
    answer = await client.post("/api/v1/explain", { name, type: "A" });
  } catch (error) {
    // Others explain just now, or no listener takes the question: everything else can be judged all the same.
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
