/** `portolan explain`: the way of one query through a configuration, and why the answer is what it is. */
import { resolve } from "node:path";
import { nodeHost } from "../../corefile/node-host.ts";
import { Name, NameError } from "../../dns/name.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { SystemClock } from "../../lib/clock.ts";
import { parseIpAddress } from "../../lib/ip-address.ts";
import { MemoryLog, type ProcessLog } from "../../lib/log.ts";
import { ExplainError, type ExplainQuestion, type Explanation } from "../../plugin/explanation.ts";
import { type Configuration, ConfigurationError } from "../../server/configuration.ts";
import { type Substitute, withLines, withSubstitutes } from "../../server/directive-substitutes.ts";
import { systemRandom, thisMachine } from "../../server/machine.ts";
import { OfflineServer } from "../../server/offline-server.ts";
import { PluginListError, type PluginRegistry } from "../../server/plugin-registry.ts";
import { corefilePath, readSource, UnreadableCorefile } from "../corefile-source.ts";
import { FlagError, flagLines, parseFlags } from "../flag-table.ts";
import { manifestPaths } from "../manifest-paths.ts";
import { defaultPluginFlags, pluginRegistry } from "../plugin-list.ts";
import { wantsColour } from "../terminal.ts";
import { EXPLAIN_FLAGS, type ExplainFlags } from "./flags.ts";
import { formatExplanation, formatPodSearch } from "./human.ts";
import { type ManifestPod, readManifestPods } from "./manifest-pods.ts";
import { resolverSettings } from "./pod-resolver.ts";
import { searchAsPod } from "./pod-search.ts";

const EXIT = { EXPLAINED: 0, CANNOT: 2 } as const;

/** @returns the exit code: 0 whatever the answer is, 2 when there is none to explain */
export async function explain(argv: readonly string[]): Promise<number> {
  try {
    return await run(argv);
  } catch (error) {
    if (error instanceof FlagError)
      process.stderr.write(`${error.message}\n${error.showUsage ? usage() : ""}`);
    else if (isUnusable(error)) process.stderr.write(`${error.message}\n`);
    else throw error;
    return EXIT.CANNOT;
  }
}

function isUnusable(error: unknown): error is Error {
  return (
    error instanceof UnreadableCorefile ||
    error instanceof ConfigurationError ||
    error instanceof PluginListError ||
    error instanceof ExplainError
  );
}

async function run(argv: readonly string[]): Promise<number> {
  const flags: ExplainFlags = {
    ...defaultPluginFlags(),
    conf: "",
    from: "",
    libc: "glibc",
    listener: "",
    manifests: [],
    port: 53,
    tcp: false,
    again: false,
    json: false,
    help: false,
  };
  const words = parseFlags(EXPLAIN_FLAGS, flags, argv, true);
  if (flags.help) {
    process.stdout.write(usage());
    return EXIT.EXPLAINED;
  }
  const { name, type } = readQuestion(words);
  const isPod = flags.from.includes("/");
  if (flags.from !== "" && !isPod && parseIpAddress(flags.from) === undefined)
    throw fault(`-from ${flags.from}: neither an IP address nor NAMESPACE/POD`);
  const log = new MemoryLog({ debugEnabled: false });
  const server = await start(flags, log);
  try {
    for (const line of log.lines) if (/^\[(WARNING|ERROR)\]/.test(line)) process.stderr.write(`${line}\n`);
    const output = isPod
      ? await explainForPod(server, name, type, flags)
      : await explainOne(server, name, type, flags);
    process.stdout.write(output);
    return EXIT.EXPLAINED;
  } finally {
    await server.stop();
  }
}

async function start(flags: ExplainFlags, log: ProcessLog): Promise<OfflineServer> {
  const source = readSource(flags.conf, flags.port);
  const registry = await registryFor(flags);
  try {
    return await OfflineServer.start({
      source,
      registry,
      host: nodeHost,
      machine: thisMachine(process.env),
      clock: new SystemClock(),
      random: systemRandom(),
      log,
      defaultPort: flags.port,
    });
  } catch (error) {
    if (error instanceof ConfigurationError || !(error instanceof Error)) throw error;
    throw fault(`cannot run this configuration: ${error.message}`);
  }
}

async function explainOne(
  server: OfflineServer,
  name: string,
  type: number,
  flags: ExplainFlags,
): Promise<string> {
  const client = flags.from === "" ? undefined : flags.from;
  const explanation = await ask(server, name, type, client, flags);
  if (flags.json) return toJson(explanation);
  return formatExplanation(explanation, { colour: wantsColour(process.stdout, process.env) });
}

async function explainForPod(
  server: OfflineServer,
  name: string,
  type: number,
  flags: ExplainFlags,
): Promise<string> {
  const pod = await findPod(server.configuration, flags);
  const domain = clusterDomain(server.configuration);
  const settings = resolverSettings(pod, domain);
  const full = `${pod.namespace}/${pod.name}`;
  if ("reason" in settings) throw fault(`pod ${full} does not come to this server: ${settings.reason}`);
  const [address] = pod.addresses;
  const search = await searchAsPod(name, { ...pod, assumed: [] }, settings, flags.libc, (candidate) =>
    ask(server, candidate, type, address, flags),
  );
  if (flags.json) return toJson(search);
  return formatPodSearch(search, { colour: wantsColour(process.stdout, process.env) });
}

async function ask(
  server: OfflineServer,
  name: string,
  type: number,
  client: string | undefined,
  flags: ExplainFlags,
): Promise<Explanation> {
  const question: ExplainQuestion = {
    name,
    type,
    transport: flags.tcp ? "tcp" : "udp",
    ...(client !== undefined && { client }),
    ...(flags.listener !== "" && { listener: flags.listener }),
  };
  if (flags.again) await server.explain(question);
  return server.explain(question);
}

function readQuestion(words: readonly string[]): { readonly name: string; readonly type: number } {
  const [name, typeName = "A", ...rest] = words;
  if (name === undefined) throw new FlagError("explain what? NAME is missing", EXIT.CANNOT, true);
  if (rest.length > 0) throw new FlagError(`extra words: ${rest.join(" ")}`, EXIT.CANNOT, true);
  const type = parseRecordType(typeName.toUpperCase());
  if (type === undefined) throw fault(`${typeName} is no type of records`);
  parseName(name);
  return { name, type };
}

function parseName(text: string): Name {
  try {
    return Name.parse(text.endsWith(".") ? text : `${text}.`);
  } catch (error) {
    if (error instanceof NameError) throw fault(`${text} is no domain name: ${error.message}`);
    throw error;
  }
}

async function registryFor(flags: ExplainFlags): Promise<PluginRegistry> {
  const { manifests } = flags;
  const registry = await pluginRegistry(flags, corefilePath(flags.conf));
  if (manifests.length === 0) return registry;
  const paths = manifests.map((path) => resolve(path));
  const substitute: Substitute = (directive) =>
    withLines(directive, ["manifests", "endpoint", "tls", "kubeconfig"], [["manifests", ...paths]]);
  return withSubstitutes(registry, new Map([["kubernetes", substitute]]));
}

async function findPod(
  configuration: Configuration,
  { from, manifests }: ExplainFlags,
): Promise<ManifestPod> {
  const paths =
    manifests.length > 0 ? manifests.map((path) => resolve(path)) : manifestPaths(configuration.blocks);
  if (paths.length === 0)
    throw fault(`-from ${from}: pods are looked for in manifests, and none are named; give -manifests PATH`);
  const pods = await readManifestPods(paths);
  const pod = pods.find(({ namespace, name }) => `${namespace}/${name}` === from);
  if (pod !== undefined) return pod;
  const known = pods.map(({ namespace, name }) => `${namespace}/${name}`);
  const hint =
    known.length === 0 ? "there are no pods in them" : `there are ${known.slice(0, 10).join(", ")}`;
  throw fault(`-from ${from}: no such pod in the manifests; ${hint}`);
}

/** The first zone of the first `kubernetes` that is not for reverse names. */
function clusterDomain({ blocks }: Configuration): string {
  for (const { directives, zones } of blocks) {
    const directive = directives.find(({ name }) => name.text === "kubernetes");
    if (directive === undefined) continue;
    const given = directive.args.map(({ text }) => text);
    const candidates = given.length > 0 ? given : zones.map((zone) => zone.toString());
    const domain = candidates.find((zone) => !zone.includes("/") && !/\.arpa\.?$/i.test(zone));
    if (domain !== undefined) return domain.replace(/\.$/, "").toLowerCase();
  }
  throw fault("-from NAMESPACE/POD: no server block has kubernetes, so there is no cluster domain");
}

function fault(message: string): FlagError {
  return new FlagError(message, EXIT.CANNOT, false);
}

function toJson(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function usage(): string {
  return [
    "portolan explain shows the way of one query through a Corefile: block, plugins, reasons, answer.",
    "",
    "Usage: portolan explain NAME [TYPE] [-conf FILE] [-from IP|NAMESPACE/POD] [-json]   (TYPE is A unless given)",
    "",
    ...flagLines(EXPLAIN_FLAGS),
    "",
    "It opens no socket to listen and asks no running server: the configuration is made in this process, and its",
    "cache is empty. Other servers that the Corefile names (upstreams, a cluster) are really asked.",
    "",
    "Exit codes: 0 explained, whatever the answer is, 2 nothing could be explained.",
    "",
  ].join("\n");
}
