/**
 * Turns the text of a Corefile into checked server blocks. Opens nothing and makes no instance: `check` depends on
 * that, and so does a reload, which must not fail half-way.
 */

import { canonicalDump } from "../../corefile/canonical-dump.ts";
import { type Diagnostic, DiagnosticSink, formatDiagnostic } from "../../corefile/diagnostic.ts";
import { modernise } from "../../corefile/history/modernise.ts";
import { findOldWords, OLD_DIRECTIVES, type OldWord, spanOf } from "../../corefile/history/old-words.ts";
import type { CorefileHost } from "../../corefile/host.ts";
import { parseCorefile } from "../../corefile/parser.ts";
import { resolveServerKeys, type ServerKey } from "../../corefile/server-key.ts";
import type { Corefile, Directive } from "../../corefile/tree.ts";
import { Name } from "../../dns/name.ts";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import { withoutRest } from "../../lib/time/turn-share.ts";
import type { PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import { type BlockSettings, defaultBlockSettings, type Machine } from "../../plugin/contract/site.ts";
import { isServedScheme, servedSchemes } from "../serving/schemes.ts";
import { registryFor } from "./global-options.ts";
import { reportCollisions } from "./listen-places.ts";
import { PluginLoadError, type PluginRegistry } from "./plugin-registry.ts";
import { reportQuic } from "./quic-listeners.ts";

/** A directive of a block with its configuration read. */
export interface ConfiguredPlugin {
  /** Place in the chain, smaller is nearer to the client. */
  readonly position: number;
  readonly definition: PluginDefinition<unknown>;
  /** One for each instance. */
  readonly configs: readonly unknown[];
  /** The first of {@link directives}. */
  readonly directive: Directive;
  /** All lines of the block with this name. */
  readonly directives: readonly Directive[];
}

export interface ConfiguredBlock {
  readonly keys: readonly ServerKey[];
  readonly zones: readonly Name[];
  /** In chain order. */
  readonly plugins: readonly ConfiguredPlugin[];
  readonly settings: BlockSettings;
  /** In the order of the text. */
  readonly directives: readonly Directive[];
}

export interface Configuration {
  /** The plugins that this configuration may name. */
  readonly registry: PluginRegistry;
  readonly blocks: readonly ConfiguredBlock[];
  /** SHA-512 in hexadecimal of the parsed blocks and the files of external plugins; comments and layout do not count. */
  readonly sha512: string;
  readonly warnings: readonly Diagnostic[];
  /**
   * Set for a Corefile without a server block: the built-in one serves in its place, and the diagnostic reports that.
   */
  readonly isEmpty?: Diagnostic | undefined;
  /** The text of the Corefile or of a file that it imports, for excerpts in diagnostics. */
  readonly textOf: (file: string) => string | undefined;
}

export interface CorefileSource {
  readonly text: string;
  /** Path or name for diagnostics; imports are relative to its folder. */
  readonly file: string;
}

/** A Corefile that cannot be run. */
export class ConfigurationError extends Error {
  override readonly name = "ConfigurationError";
  readonly diagnostics: readonly Diagnostic[];

  constructor(diagnostics: readonly Diagnostic[], text: string, cause?: unknown) {
    super(text, cause === undefined ? undefined : { cause });
    this.diagnostics = diagnostics;
  }
}

export interface ConfigurationOptions {
  readonly host: CorefileHost;
  readonly registry: PluginRegistry;
  readonly machine: Machine;
  /** The port of keys without one (`-dns.port`). */
  readonly defaultPort: number;
  /** Awaited between parts of the work, so that the caller can answer queries: see `TurnShare`. */
  readonly rest?: () => Promise<void>;
  /** The leader has read the same Corefile and logged its warnings: only errors are looked for here. */
  readonly isAdvised?: boolean | undefined;
}

/**
 * What CoreDNS serves without a Corefile, or with one that has no block
 * (docs/spec/coredns-behaviour.md#command-line).
 */
export function defaultCorefile(port: number): CorefileSource {
  return { text: `.:${port} {\n    whoami\n    log\n}\n`, file: "built-in Corefile" };
}

/** Everything that a Corefile shows without running it. */
export interface Inspection {
  readonly corefile: Corefile;
  /** Includes the plugins that its global options add. */
  readonly registry: PluginRegistry;
  /** The blocks that could be read; incomplete after an error. */
  readonly blocks: readonly ConfiguredBlock[];
  /** Errors, and warnings about valid lines that are probably mistakes; file by file, from top to bottom. */
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * Reads a Corefile and all its directives.
 * @throws ConfigurationError with all errors at once
 */
export async function readConfiguration(
  source: CorefileSource,
  options: ConfigurationOptions,
): Promise<Configuration> {
  const { corefile, registry, blocks, diagnostics } = await inspectConfiguration(source, options);
  if (diagnostics.some(({ severity }) => severity === "error"))
    throw refusal(diagnostics, source, options.host);
  if (blocks.length === 0) {
    const builtIn = await readConfiguration(defaultCorefile(options.defaultPort), options);
    return { ...builtIn, warnings: diagnostics, isEmpty: diagnostics.find(({ code }) => code === NO_BLOCK) };
  }
  await options.rest?.();
  return {
    blocks,
    registry,
    sha512: nodeCrypto()
      .createHash("sha512")
      .update(canonicalDump(corefile))
      .update(registry.stampOf(namesOf(blocks)))
      .digest("hex"),
    warnings: diagnostics,
    textOf: (file) => textOf(file, source, options.host),
  };
}

/** Reads a Corefile as {@link readConfiguration} does, and goes on after an error. */
export async function inspectConfiguration(
  source: CorefileSource,
  options: ConfigurationOptions,
): Promise<Inspection> {
  const { rest = withoutRest } = options;
  options.registry.refresh();
  const { corefile: written, diagnostics } = parseCorefile(source.text, {
    file: source.file,
    host: options.host,
    directives: [...options.registry.names, ...OLD_DIRECTIVES],
  });
  await rest();
  const report = new DiagnosticSink();
  const oldWords = findOldWords(written, (path) => {
    const content = options.host.readFile(path);
    return content.kind === "text" ? content.text : undefined;
  });
  for (const word of oldWords) reportOldWord(word, report);
  const corefile = modernise(written, oldWords);
  if (corefile.blocks.length === 0 && diagnostics.every(({ severity }) => severity !== "error"))
    reportNoBlock(source, options.defaultPort, report);
  const registry = registryFor(corefile, options.registry, report);
  const keysOfBlocks = resolveServerKeys(corefile, report, { defaultPort: options.defaultPort });
  await rest();
  const blocks: ConfiguredBlock[] = [];
  for (const [index, block] of corefile.blocks.entries()) {
    const keys = keysOfBlocks[index] ?? [];
    for (const key of keys) reportUnavailableScheme(key, report);
    blocks.push(await configureBlock(block.directives, keys, { ...options, registry }, report));
    await rest();
  }
  const hasView = (index: number): boolean =>
    corefile.blocks[index]?.directives.some(({ name }) => name.text === "view") === true;
  reportOverlaps(blocks, hasView, report);
  reportCollisions(blocks, report);
  reportObjectsOnThreads(blocks, registry, report);
  reportQuic(blocks, options.machine, report);
  let all: readonly Diagnostic[];
  if (options.isAdvised === true) all = [...diagnostics, ...report.diagnostics];
  else {
    // Followers do not load the lint rules.
    const { advise } = await import("../../lint/advice.ts");
    await rest();
    const textOfFile = (file: string): string | undefined => textOf(file, source, options.host);
    const subject = { corefile, blocks, registry, machine: options.machine, textOf: textOfFile };
    all = await advise(subject, diagnostics, report, rest);
  }
  return { corefile, registry, blocks, diagnostics: inOrderOfText(all, corefile.files) };
}

const NO_BLOCK = "NO_SERVER_BLOCK";

/** CoreDNS serves the `whoami` default without a warning. */
function reportNoBlock({ file }: CorefileSource, port: number, report: DiagnosticSink): void {
  const message = `there is no server block, so the built-in one is served: whoami on port ${port}`;
  report.warning(NO_BLOCK, { file, line: 1, column: 1, length: 1 }, message, {
    expected: "at least one server block",
    notes: ["a reload refuses such a Corefile, and the old configuration stays in force"],
  });
}

/** The old word works; the warning names its replacement. */
function reportOldWord(word: OldWord, report: DiagnosticSink): void {
  const { plugin, option, removed, losses, advice } = word;
  const what = option === undefined ? `'${plugin}'` : `'${option}' in '${plugin}'`;
  report.warning("OLD_WORD", spanOf(word), `${what} was removed in CoreDNS ${removed}: ${advice}`, {
    notes: [...losses, "'portolan migrate' rewrites the Corefile"],
  });
}

/** The files in the order in which they were read. */
function inOrderOfText(diagnostics: readonly Diagnostic[], files: readonly string[]): Diagnostic[] {
  const places = new Map(files.map((file, index) => [file, index]));
  const placeOf = ({ span }: Diagnostic): number => places.get(span.file) ?? files.length;
  return [...diagnostics].sort(
    (one, other) =>
      placeOf(one) - placeOf(other) || one.span.line - other.span.line || one.span.column - other.span.column,
  );
}

function namesOf(blocks: readonly ConfiguredBlock[]): string[] {
  return blocks.flatMap(({ plugins }) => plugins.map(({ definition }) => definition.name));
}

async function configureBlock(
  directives: readonly Directive[],
  keys: readonly ServerKey[],
  options: ConfigurationOptions,
  report: DiagnosticSink,
): Promise<ConfiguredBlock> {
  const { registry, rest = withoutRest } = options;
  const settings = defaultBlockSettings();
  const zones = keys.map((key) => Name.parse(key.zone));
  const occurrences = new Map<string, Directive[]>();
  for (const directive of directives) {
    const name = directive.name.text;
    const others = occurrences.get(name);
    if (others === undefined) occurrences.set(name, [directive]);
    else others.push(directive);
  }
  const plugins: ConfiguredPlugin[] = [];
  const names = [...occurrences.keys()].sort((a, b) => registry.position(a) - registry.position(b));
  for (const name of names) {
    const [directive, ...others] = occurrences.get(name) ?? [];
    if (directive === undefined) continue;
    // Unknown names were reported by the parser.
    if (registry.position(name) === Number.POSITIVE_INFINITY) continue;
    const definition = await loadDefinition(name, directive, registry, report);
    await rest();
    const configs = definition?.config.parse([directive, ...others], { zones, keys, report });
    if (definition === undefined || configs === undefined) continue;
    for (const config of configs) {
      definition.configure?.(config, settings, {
        machine: options.machine,
        report,
        span: directive.name.span,
      });
    }
    const directives = [directive, ...others];
    reportNeeds(definition, occurrences, directive, report);
    plugins.push({ position: registry.position(name), definition, configs, directive, directives });
  }
  return { keys, zones, plugins, settings, directives };
}

function reportNeeds(
  { name, needs = [] }: PluginDefinition<unknown>,
  present: ReadonlyMap<string, unknown>,
  directive: Directive,
  report: DiagnosticSink,
): void {
  for (const need of needs.filter((other) => !present.has(other))) {
    const message = `${need} plugin not loaded: ${name} needs one in the same server block`;
    report.error("PLUGIN_NEEDS", directive.name.span, message, {
      expected: `a '${need}' in the same server block`,
    });
  }
}

async function loadDefinition(
  name: string,
  directive: Directive,
  registry: PluginRegistry,
  report: DiagnosticSink,
): Promise<PluginDefinition<unknown> | undefined> {
  try {
    return await registry.definition(name);
  } catch (error) {
    if (!(error instanceof PluginLoadError)) throw error;
    report.error("PLUGIN_LOAD", directive.name.span, error.message);
    return undefined;
  }
}

function reportUnavailableScheme(key: ServerKey, report: DiagnosticSink): void {
  if (isServedScheme(key.scheme)) return;
  report.error(
    "SCHEME_UNAVAILABLE",
    key.span,
    `${key.scheme}:// listeners are not supported by this version of Portolan`,
    {
      expected: `a key without scheme, or with one of ${servedSchemes.map((scheme) => `${scheme}://`).join(", ")}`,
    },
  );
}

/**
 * One zone and port both on the wildcard and on a specific address (docs/spec/coredns-behaviour.md#server-keys).
 * @param isViewed whether a block has a view, valid or not
 */
function reportOverlaps(
  blocks: readonly ConfiguredBlock[],
  isViewed: (index: number) => boolean,
  report: DiagnosticSink,
): void {
  const seen = new Map<string, { bound: boolean; hosts: Set<string> }>();
  for (const [index, { keys, settings }] of blocks.entries()) {
    if (settings.listensNowhere) continue;
    const bound = settings.listenHosts.length > 0;
    const hasView = isViewed(index);
    for (const key of keys) {
      const text = `${key.scheme}://${key.zone}:${key.port}`;
      const other = seen.get(text);
      if (other === undefined) {
        seen.set(text, { bound, hosts: new Set(hasView ? [] : settings.listenHosts) });
        continue;
      }
      if (other.bound !== bound) {
        const message = `cannot serve ${text} - zone overlap listener capacity with ${text}`;
        report.error("KEY_OVERLAP", key.span, message, {
          notes: [
            "one block listens on all addresses, the other on some of them: give both a bind, or neither",
          ],
        });
      }
      for (const host of settings.listenHosts) {
        if (other.hosts.has(host) && !hasView) {
          report.error(
            "KEY_DEFINED_TWICE",
            key.span,
            `cannot serve ${text} on ${host} - it is already defined`,
          );
        }
        // A block with a view leaves the queries that it rejects to other blocks.
        if (!hasView) other.hosts.add(host);
      }
    }
  }
}

/** Functions cannot be sent to another thread. */
function reportObjectsOnThreads(
  blocks: readonly ConfiguredBlock[],
  registry: PluginRegistry,
  report: DiagnosticSink,
): void {
  if (blocks.every(({ settings }) => settings.sockets <= 1)) return;
  for (const { plugins } of blocks) {
    for (const { definition, directive } of plugins) {
      const { name } = definition;
      if (registry.entries[registry.position(name)]?.isObject !== true) continue;
      report.error(
        "PLUGIN_ON_THREADS",
        directive.name.span,
        `plugin '${name}' was passed as an object, so it cannot run on the threads of multisocket`,
        { expected: "its module, or no multisocket" },
      );
    }
  }
}

function refusal(
  diagnostics: readonly Diagnostic[],
  source: CorefileSource,
  host: CorefileHost,
): ConfigurationError {
  const text = diagnostics
    .map((diagnostic) => formatDiagnostic(diagnostic, textOf(diagnostic.span.file, source, host)))
    .join("\n");
  return new ConfigurationError(diagnostics, text);
}

/** A diagnostic with the line it is about. */
export function describeDiagnostic(
  diagnostic: Diagnostic,
  source: CorefileSource,
  host: CorefileHost,
): string {
  return formatDiagnostic(diagnostic, textOf(diagnostic.span.file, source, host));
}

function textOf(file: string, source: CorefileSource, host: CorefileHost): string | undefined {
  if (file === source.file) return source.text;
  const content = host.readFile(file);
  return content.kind === "text" ? content.text : undefined;
}
