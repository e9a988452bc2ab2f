/** The command line of the benchmark. */
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { OtherServer } from "./servers/other.ts";
import { WORKLOADS } from "./workloads.ts";

export interface BenchmarkOptions {
  /** Of each of the two loads of a measurement. */
  readonly seconds: number;
  readonly rounds: number;
  /** Names; undefined for all. */
  readonly workloads: readonly string[] | undefined;
  readonly servers: readonly string[] | undefined;
  readonly others: readonly OtherServer[];
  /** Folder for the results. */
  readonly output: string;
  /** Only the live cluster is measured, and its figures are put beside those of the last run. */
  readonly onlyCluster: boolean;
  /** The same for memory and pauses. */
  readonly onlyMemory: boolean;
  /** The same for a large zone; {@link seconds} and {@link rounds} count for it as well. */
  readonly onlyZones: boolean;
  /** The same for the console; {@link seconds} is the length of its load, {@link rounds} how often its page is loaded. */
  readonly onlyConsole: boolean;
  /** Minutes of load in place of the measurements of {@link onlyMemory}. */
  readonly mixed: number | undefined;
  /** Only the loads of {@link onlyMemory}, alternately in a control group with this many MiB and without one. */
  readonly limit: number | undefined;
  /** Only floods, for this many minutes with one thread, and again with two. */
  readonly soak: number | undefined;
  /** Folder for what ran in the longest turns of {@link onlyMemory} and {@link mixed}. */
  readonly turns: string | undefined;
  /** Whether `dist/` is built first where the sources are newer. */
  readonly build: boolean;
}

/** A command line that cannot be carried out. */
export class OptionError extends Error {
  override readonly name = "OptionError";
}

export const OWN_SERVERS: readonly string[] = ["portolan", "portolan-dgram", "unbound", "dnsmasq", "floor"];

export const HELP = `npm run bench -- [options]

  --seconds N           length of each of the two loads of a measurement (default 10)
  --rounds N            how often everything is measured (default 3)
  --workloads A,B       only these: ${WORKLOADS.slice(0, 4)
    .map(({ name }) => name)
    .join(", ")},
                        ${WORKLOADS.slice(4)
                          .map(({ name }) => name)
                          .join(", ")}
  --servers A,B         only these: ${OWN_SERVERS.join(", ")},
                        and those of --server
  --server NAME=COMMAND another server beside them. Placeholders: {config} {port} {metrics} {upstream} {upstreamport}
                        {zone} {manifests} {hosts} {zonefile} {cache}; README.md says what they stand for. {config} is
                        the path of a Corefile, or of:
  --server-config NAME=FILE
                        a template for the server's configuration, with the same placeholders;
                        NAME:WORKLOAD=FILE is for one workload only
  --output DIR          where RESULTS.md, results.json and results.svg go (default: bench/)
  --cluster             with --server NAME=COMMAND, or with several: what changes of the cluster take of Portolan and of these beside each other, in
                        turns, --rounds times (default 3; some seven minutes each). They get a Corefile with \`kubernetes\` as {config}. Without one:
                        only the live cluster (some nine minutes): an API with 8,000 Services and 150,000 endpoints,
                        time to sync, memory, latency of changes, and what changes take of the processor. Its figures come beside those that are there
  --memory              only memory and pauses (some ten minutes): 100,000 and 1,000,000 cached names, and the usual
                        Corefile beside a live cluster, through mixed load, a relist, a silent upstream and a reload
  --zones               only a zone of a million records beside NSD and Knot: time to load, memory, CPU a query.
                        --seconds and --rounds say how long and how often
  --mixed MINUTES       the last of these alone, over and over
  --limit MIB           only the live cluster inside of a control group with so much memory (as root, some fifteen minutes): the
                        loads of --memory, each in turns with a server without a limit
  --soak MINUTES        only floods, for so long with one thread and then with two: random names, names of 255 octets, names that
                        collide, fuzzed messages and answers of 64 KiB, with the resident memory of each round. Then 2,000 reloads
                        between one thread and two, under load on busy processors
  --console             only the console (some five minutes): how long its page takes to load in Chromium beside an empty
                        one, from a tab with another page and from an empty tab, and its stream under as many queries as the
                        server answers. --seconds (default 60) is the length of that load, --rounds (default 20) how often the
                        page is loaded from each
  --turns DIR           with --memory or --mixed: what ran in the ten longest turns of each load, as files in DIR. The server is
                        sampled meanwhile, so its other figures are not to be compared
  --no-build            run what is in dist/, or the sources where they are newer
  --help

Example: npm run bench -- --server 'coredns=/opt/coredns -conf {config}'
`;

/** @throws OptionError */
export function parseOptions(argv: readonly string[]): BenchmarkOptions | "help" {
  const { values } = parsed(argv);
  if (values.help) return "help";
  const templates = new Map<string, Map<string, string>>();
  for (const assignment of values["server-config"] ?? []) {
    const [name, file] = splitAssignment("--server-config", assignment);
    const [server = "", workload = ""] = name.split(":");
    if (workload !== "") knownWorkload(workload);
    const ofServer = templates.get(server) ?? new Map<string, string>();
    templates.set(server, ofServer.set(workload, resolve(file)));
  }
  const others = (values.server ?? []).map((assignment) => {
    const [name, command] = splitAssignment("--server", assignment);
    if (OWN_SERVERS.includes(name))
      throw new OptionError(`--server: "${name}" is a server of the benchmark itself`);
    return { name, command, templates: templates.get(name) ?? new Map<string, string>() };
  });
  const serverNames = [...OWN_SERVERS, ...others.map(({ name }) => name)];
  for (const name of templates.keys())
    if (!others.some((other) => other.name === name))
      throw new OptionError(`--server-config: there is no --server ${name}=COMMAND`);
  return {
    seconds: positive("--seconds", values.seconds ?? (values.console ? "60" : "10")),
    rounds: positive("--rounds", values.rounds ?? (values.console ? "20" : "3")),
    workloads: values.workloads?.split(",").map(knownWorkload),
    servers: values.servers?.split(",").map((name) => known("server", name, serverNames)),
    others,
    output: resolve(values.output),
    onlyCluster: isAlone("cluster", values.cluster, values, others.length > 0 ? ["rounds", "server"] : []),
    onlyMemory: isAlone("memory", values.memory, values),
    onlyZones: isAlone("zones", values.zones, values, ["seconds", "rounds"]),
    onlyConsole: isAlone("console", values.console, values, ["seconds", "rounds"]),
    mixed: values.mixed === undefined ? undefined : positive("--mixed", values.mixed),
    limit: values.limit === undefined ? undefined : positive("--limit", values.limit),
    soak: values.soak === undefined ? undefined : positive("--soak", values.soak),
    turns: turnsFolder(values),
    build: values.build,
  };
}

function turnsFolder({ turns, memory, mixed }: ReturnType<typeof parsed>["values"]): string | undefined {
  if (turns === undefined) return undefined;
  if (!memory && mixed === undefined) throw new OptionError("--turns goes with --memory or --mixed");
  return resolve(turns);
}

/** Options for workloads do not apply to the cluster, nor to memory. */
function isAlone(
  name: string,
  isWanted: boolean,
  values: ReturnType<typeof parsed>["values"],
  takes: readonly string[] = [],
): boolean {
  if (!isWanted) return false;
  for (const option of ["seconds", "rounds", "workloads", "servers", "server", "server-config"] as const)
    if (values[option] !== undefined && !takes.includes(option))
      throw new OptionError(`--${name} and --${option} do not go together`);
  return true;
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowNegative: true,
      options: {
        seconds: { type: "string" },
        rounds: { type: "string" },
        workloads: { type: "string" },
        servers: { type: "string" },
        server: { type: "string", multiple: true },
        "server-config": { type: "string", multiple: true },
        output: { type: "string", default: dirname(fileURLToPath(import.meta.url)) },
        cluster: { type: "boolean", default: false },
        memory: { type: "boolean", default: false },
        zones: { type: "boolean", default: false },
        console: { type: "boolean", default: false },
        mixed: { type: "string" },
        limit: { type: "string" },
        soak: { type: "string" },
        turns: { type: "string" },
        build: { type: "boolean", default: true },
        help: { type: "boolean", default: false },
      },
    });
  } catch (error) {
    throw new OptionError(error instanceof Error ? error.message : String(error));
  }
}

function positive(option: string, text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text))
    throw new OptionError(`${option}: expected a whole number from 1 on, found "${text}"`);
  return Number(text);
}

function splitAssignment(option: string, text: string): [name: string, value: string] {
  const match = /^([a-z0-9][a-z0-9.:-]*)=(.+)$/.exec(text);
  if (match === null) throw new OptionError(`${option}: expected NAME=..., found "${text}"`);
  const [, name = "", value = ""] = match;
  return [name, value];
}

function knownWorkload(name: string): string {
  return known(
    "workload",
    name,
    WORKLOADS.map((workload) => workload.name),
  );
}

function known(kind: string, name: string, names: readonly string[]): string {
  if (names.includes(name)) return name;
  throw new OptionError(`there is no ${kind} "${name}"; there are: ${names.join(", ")}`);
}
