/** Checks files that were given together. A Corefile can import the keys of a ConfigMap given beside it. */
import type { Diagnostic, Span } from "../../corefile/diagnostic.ts";
import type { CorefileHost } from "../../corefile/host.ts";
import { nodeHost } from "../../corefile/node-host.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { type CorefileSource, inspectConfiguration } from "../../server/configuration/configuration.ts";
import { systemRandom, thisMachine } from "../../server/configuration/machine.ts";
import type { PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { withConfigMaps } from "../config-maps/config-map-host.ts";
import type { ImportableKey } from "../config-maps/config-maps.ts";
import type { CheckedFile } from "./checked-file.ts";
import type { GivenCorefile, GivenFile } from "./given-files.ts";

export interface CheckOptions {
  /** With the plugins of the `plugin.cfg` beside a Corefile; `undefined` for standard input. */
  readonly registryFor: (file: string | undefined) => Promise<PluginRegistry>;
  /** For server blocks without a port. */
  readonly port: number;
  /** Whether to read the files that a Corefile names. */
  readonly files: boolean;
}

/** Keeps the order of the files. A finding in an imported key is reported for the file that holds the key. */
export async function checkFiles(
  given: readonly GivenFile[],
  options: CheckOptions,
): Promise<readonly CheckedFile[]> {
  const findings = new Findings(given);
  const { custom, twice } = distinct(given.flatMap((file) => file.custom));
  for (const key of twice) findings.add(key.file, [givenTwice(key, custom)]);
  const imported = new Set<ImportableKey>();
  const imports = (key: ImportableKey): void => {
    imported.add(key);
  };
  for (const { source, corefiles, faults = [] } of given) {
    findings.add(source.file, faults);
    for (const corefile of corefiles) {
      const mounted = { siblings: corefile.siblings, custom };
      const host = withConfigMaps(nodeHost, corefile.source.file, mounted, imports);
      findings.add(source.file, await findingsIn(corefile, host, source.file, options));
    }
  }
  const unused = custom.filter((key) => !imported.has(key));
  const hasCorefile = given.some(({ corefiles }) => corefiles.length > 0);
  for (const key of unused) if (hasCorefile) findings.add(key.file, [notImported(key, imported.size > 0)]);
  if (custom.length > 0 && imported.size === 0) {
    const { AKS_COREFILE } = await import("../config-maps/aks-corefile.ts");
    const host = withConfigMaps(nodeHost, AKS_COREFILE.file, { siblings: [], custom }, imports);
    const all = await findingsIn({ source: AKS_COREFILE, siblings: [] }, host, "", options);
    // Findings in the built-in AKS Corefile itself do not concern the user.
    for (const diagnostic of all)
      if (diagnostic.span.file !== AKS_COREFILE.file) findings.add("", [diagnostic]);
    if (!hasCorefile)
      for (const key of custom.filter((each) => !imported.has(each)))
        findings.add(key.file, [notImported(key, true)]);
    return findings.files(AKS_COREFILE);
  }
  return findings.files(undefined);
}

/** Keeps the first of several keys with the same name: a folder can hold each name only once. */
function distinct(keys: readonly ImportableKey[]): { custom: ImportableKey[]; twice: ImportableKey[] } {
  const first = new Map<string, ImportableKey>();
  for (const key of keys) if (!first.has(key.key)) first.set(key.key, key);
  return { custom: [...first.values()], twice: keys.filter((key) => first.get(key.key) !== key) };
}

function givenTwice({ key, file, line }: ImportableKey, custom: readonly ImportableKey[]): Diagnostic {
  const first = custom.find((other) => other.key === key);
  return {
    code: "CHECK_KEY_TWICE",
    severity: "warning",
    message: `not checked: ${first?.file ?? "another file"} has a key '${key}' as well, and a Corefile can import only one of them`,
    span: { file, line, column: 1, length: 1 },
    notes: ["check one cluster at a time"],
  };
}

/** CoreDNS ignores such a key silently, and its author wonders why it has no effect. */
function notImported({ key, file, line }: ImportableKey, areOthersImported: boolean): Diagnostic {
  const message = areOthersImported
    ? `no Corefile imports the key '${key}', so it has no effect`
    : `no Corefile given here imports the key '${key}' from a folder 'custom'`;
  return {
    code: "CHECK_KEY_NOT_IMPORTED",
    severity: "warning",
    message,
    span: { file, line, column: 1, length: 1 },
    expected: "a key that ends in '.server' or '.override', as the Corefiles of AKS and k3s import them",
  };
}

async function findingsIn(
  { source, relocate }: GivenCorefile,
  host: CorefileHost,
  file: string,
  { registryFor, port, files }: CheckOptions,
): Promise<readonly Diagnostic[]> {
  const registry = await registryFor(file === "stdin" || file === "" ? undefined : file);
  const diagnostics = await findingsOf(source, host, registry, { port, files });
  return relocate === undefined ? diagnostics : diagnostics.map(relocate);
}

async function findingsOf(
  source: CorefileSource,
  host: CorefileHost,
  registry: PluginRegistry,
  { port, files }: Pick<CheckOptions, "port" | "files">,
): Promise<readonly Diagnostic[]> {
  const options = { host, registry, machine: thisMachine(process.env), defaultPort: port };
  const { diagnostics } = await inspectConfiguration(source, options);
  if (!files || diagnostics.some(({ severity }) => severity === "error")) return diagnostics;
  const { examineFiles } = await import("../../server/offline-server.ts");
  const faults = await examineFiles({
    ...options,
    source,
    clock: new SystemClock(),
    random: systemRandom(),
  });
  return [...diagnostics, ...faults].sort(
    ({ span: one }, { span: other }) =>
      Number(one.file === other.file) * (one.line - other.line || one.column - other.column),
  );
}

/** Findings, grouped by the file that they are shown under. */
class Findings {
  readonly #given: readonly GivenFile[];
  readonly #keys: ReadonlyMap<string, ImportableKey>;
  readonly #byFile = new Map<string, Diagnostic[]>();
  /** Several Corefiles may import the same faulty key. */
  readonly #seen = new Set<string>();

  constructor(given: readonly GivenFile[]) {
    this.#given = given;
    const keys = given.flatMap(({ custom, corefiles }) => [
      ...custom,
      ...corefiles.flatMap(({ siblings }) => siblings),
    ]);
    this.#keys = new Map(keys.map((key) => [key.name, key]));
  }

  add(file: string, diagnostics: readonly Diagnostic[]): void {
    for (const diagnostic of diagnostics) {
      const { code, message, span } = diagnostic;
      const key = this.#keys.get(span.file);
      const identity = JSON.stringify([code, message, span.file, span.line, span.column]);
      if (key !== undefined && this.#seen.has(identity)) continue;
      this.#seen.add(identity);
      const owner = key?.file ?? file;
      const found = this.#byFile.get(owner);
      if (found === undefined) this.#byFile.set(owner, [diagnostic]);
      else found.push(diagnostic);
    }
  }

  /** @param builtIn the Corefile that the keys were checked with when no given Corefile imports them */
  files(builtIn: CorefileSource | undefined): CheckedFile[] {
    return this.#given.map(({ source, corefiles, custom }) => {
      const isPlain = corefiles.some((corefile) => corefile.source.text === source.text);
      const form = custom.length > 0 && builtIn !== undefined ? `YAML, with the ${builtIn.file}` : "YAML";
      return {
        file: source.file,
        ...(!isPlain && { form }),
        diagnostics: this.#byFile.get(source.file) ?? [],
        textOf: this.#textOf(source, corefiles, builtIn),
        inDocument: (span) => this.#inDocument(span),
      };
    });
  }

  #textOf(
    { file, text }: CorefileSource,
    corefiles: readonly GivenCorefile[],
    builtIn: CorefileSource | undefined,
  ): CheckedFile["textOf"] {
    const texts = new Map<string, string | undefined>();
    if (builtIn !== undefined) texts.set(builtIn.file, builtIn.text);
    for (const corefile of corefiles) texts.set(corefile.source.file, corefile.source.text);
    // A Corefile at its place in the YAML has the line numbers of the YAML.
    texts.set(file, text);
    return (name) => {
      if (!texts.has(name)) {
        const content = nodeHost.readFile(name);
        texts.set(name, this.#keys.get(name)?.text ?? (content.kind === "text" ? content.text : undefined));
      }
      return texts.get(name);
    };
  }

  /** Maps a place in a key to its place in the YAML, if that is known. */
  #inDocument(span: Span): Span {
    const importedAt = span.importedAt && { importedAt: this.#inDocument(span.importedAt) };
    const key = this.#keys.get(span.file);
    if (key === undefined) return { ...span, ...importedAt };
    const { file, line, indentation } = key;
    if (indentation === undefined) return { file, line, column: 1, length: 1, ...importedAt };
    return {
      file,
      line: line + span.line,
      column: span.column + indentation,
      length: span.length,
      ...importedAt,
    };
  }
}
