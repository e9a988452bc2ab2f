/** `portolan explain`: traces one query through a configuration and says why the answer is what it is. */
import { Name, NameError } from "../../dns/name.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { ExplainError, type ExplainQuestion, type Explanation } from "../../plugin/contract/explanation.ts";
import { ConfigurationError } from "../../server/configuration/configuration.ts";
import { PluginListError } from "../../server/configuration/plugin-registry.ts";
import { UnreadableCorefile } from "../corefile-source.ts";
import { exitCodesLine } from "../exit-codes.ts";
import { FlagError, flagLines, parseFlags } from "../flag-table.ts";
import { fitted, wantsColour } from "../terminal.ts";
import { type Explainer, fault } from "./explainer.ts";
import { defaultExplainFlags, EXPLAIN_FLAGS, type ExplainFlags, flagsWithoutServer } from "./flags.ts";
import { formatExplanation, formatPodSearch } from "./human.ts";
import { resolverSettings } from "./pod-resolver.ts";
import { searchAsPod } from "./pod-search.ts";

const EXIT = { EXPLAINED: 0, CANNOT: 2 } as const;

/** @returns the exit code: 0 whatever the answer is, 2 if no answer could be explained */
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
  const flags = defaultExplainFlags();
  const words = parseFlags(EXPLAIN_FLAGS, flags, argv, true);
  if (flags.help) {
    process.stdout.write(usage());
    return EXIT.EXPLAINED;
  }
  const { name, type } = readQuestion(words);
  const pod = readPodName(flags.from);
  const explainer = await makeExplainer(flags);
  try {
    const output =
      pod === undefined
        ? await explainOne(explainer, name, type, flags)
        : await explainForPod(explainer, name, type, pod, flags);
    process.stdout.write(output);
    return EXIT.EXPLAINED;
  } finally {
    await explainer.stop();
  }
}

/** Either explainer is loaded only when it is used. */
async function makeExplainer(flags: ExplainFlags): Promise<Explainer> {
  if (flags.server !== "") {
    const [useless] = flagsWithoutServer(flags);
    if (useless !== undefined)
      throw fault(
        `-${useless} changes how a configuration is run, and -server asks one that is running: leave one out`,
      );
    const { parseServerAddress, RemoteExplainer } = await import("./remote-explainer.ts");
    return new RemoteExplainer(parseServerAddress(flags.server, flags.tokenFile), flags.tokenFile);
  }
  if (flags.tokenFile !== "") throw fault("-token-file is for a console: name the console with -server");
  const { LocalExplainer } = await import("./local-explainer.ts");
  const explainer = await LocalExplainer.start(flags);
  for (const line of explainer.warnings) process.stderr.write(`${line}\n`);
  return explainer;
}

async function explainOne(
  explainer: Explainer,
  name: string,
  type: number,
  flags: ExplainFlags,
): Promise<string> {
  const client = flags.from === "" ? undefined : flags.from;
  const explanation = await ask(explainer, name, type, client, flags);
  if (flags.json) return toJson(explanation);
  return formatExplanation(explanation, { colour: wantsColour(process.stdout, process.env) });
}

interface PodName {
  readonly namespace: string;
  readonly name: string;
}

async function explainForPod(
  explainer: Explainer,
  name: string,
  type: number,
  { namespace, name: podName }: PodName,
  flags: ExplainFlags,
): Promise<string> {
  const { pod, domain } = await explainer.findPod(namespace, podName);
  const settings = resolverSettings(pod, domain);
  if ("reason" in settings)
    throw fault(`pod ${namespace}/${podName} does not use this server: ${settings.reason}`);
  const [address] = pod.addresses;
  const search = await searchAsPod(name, pod, settings, flags.libc, (candidate) =>
    ask(explainer, candidate, type, address, flags),
  );
  if (flags.json) return toJson(search);
  return formatPodSearch(search, { colour: wantsColour(process.stdout, process.env) });
}

function ask(
  explainer: Explainer,
  name: string,
  type: number,
  client: string | undefined,
  flags: ExplainFlags,
): Promise<Explanation> {
  const question: ExplainQuestion = {
    name: absolute(name),
    type,
    transport: flags.tcp ? "tcp" : "udp",
    ...(client !== undefined && { client }),
    ...(flags.listener !== "" && { listener: flags.listener }),
  };
  return explainer.explain(question);
}

function readQuestion(words: readonly string[]): { readonly name: string; readonly type: number } {
  const [name, typeName = "A", ...rest] = words;
  if (name === undefined)
    throw new FlagError("NAME is missing: which name shall be explained?", EXIT.CANNOT, true);
  if (rest.length > 0) throw new FlagError(`extra words: ${rest.join(" ")}`, EXIT.CANNOT, true);
  const type = parseRecordType(typeName.toUpperCase());
  if (type === undefined) throw fault(`${typeName} is not a record type${nearType(typeName)}`);
  absolute(name);
  return { name, type };
}

const USUAL_TYPES = ["A", "AAAA", "CNAME", "MX", "NS", "PTR", "SOA", "SRV", "TXT", "HTTPS", "SVCB", "ANY"];

function nearType(word: string): string {
  const near = nearestWord(word.toUpperCase(), USUAL_TYPES);
  return near === undefined ? ", such as A, AAAA, SRV or TYPE65280" : `; did you mean ${near}?`;
}

/** @throws FlagError for an invalid name */
function absolute(text: string): string {
  const name = text.endsWith(".") ? text : `${text}.`;
  try {
    Name.parse(name);
    return name;
  } catch (error) {
    if (!(error instanceof NameError)) throw error;
    throw fault(`${text} is not a domain name: ${error.reason}`);
  }
}

/** Object names as the API takes them (RFC 1123 subdomains). */
const POD_NAME = /^([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)\/([a-z0-9](?:[-.a-z0-9]{0,251}[a-z0-9])?)$/;

/** @returns `undefined` for an address, or for empty text */
function readPodName(from: string): PodName | undefined {
  if (from === "" || parseIpAddress(from) !== undefined) return undefined;
  const [, namespace, name] = POD_NAME.exec(from) ?? [];
  if (namespace !== undefined && name !== undefined) return { namespace, name };
  const hint = from.includes("/") ? ": such names have lower-case letters, digits, - and ." : "";
  throw fault(`-from ${from}: neither an IP address nor NAMESPACE/POD${hint}`);
}

function toJson(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function usage(): string {
  const text = [
    "portolan explain traces a query: block, plugins, reasons, upstreams, answer.",
    "",
    "Usage: portolan explain NAME [TYPE] [-conf FILE] [-from IP|NAMESPACE/POD]",
    "       portolan explain NAME [TYPE] -server ADDR [-from IP|NAMESPACE/POD]",
    "",
    "The default TYPE is A.",
    "",
    ...flagLines(EXPLAIN_FLAGS),
    "",
    "Without -server it runs the configuration in this process, with an empty cache, and listens on no socket. It does query the upstreams and the cluster that the Corefile names.",
    "With -server it asks the running server, with its cache. The Corefile of that server needs the plugin explain.",
    "",
    exitCodesLine("explain"),
    "",
  ];
  return fitted(text.join("\n"));
}
