/** Corefiles in ConfigMaps, and ConfigMaps with parts of a Corefile, such as `coredns-custom` of AKS and k3s. */
import {
  isMap,
  isScalar,
  isSeq,
  type Node,
  parseAllDocuments,
  type Scalar,
  type YAMLMap,
  type YAMLParseError,
} from "yaml";
import type { CorefileSource } from "../../server/configuration/configuration.ts";

/** A Kubernetes object without a Corefile: the wrong file, or the wrong key. */
export class NoCorefileInYaml extends Error {
  override readonly name = "NoCorefileInYaml";
}

/** A key of a ConfigMap that a Corefile can import. */
export interface ImportableKey {
  readonly key: string;
  readonly text: string;
  /** Name of the text in messages: `custom.yaml (test.server)`. */
  readonly name: string;
  /** The YAML file that has the key. */
  readonly file: string;
  /** Line of the key in the YAML, from 1. */
  readonly line: number;
  /** Indentation of each line in the YAML; `undefined` where the lines of the text are not lines of the YAML. */
  readonly indentation: number | undefined;
}

/** A key at its place in the YAML. */
export interface UnusableKey {
  readonly key: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export interface FoundCorefile {
  readonly source: CorefileSource;
  /** The other keys of the same ConfigMap. In a pod they lie in the folder of the Corefile. */
  readonly siblings: readonly ImportableKey[];
}

/** YAML that cannot be parsed and so may hide a ConfigMap. */
export class BrokenYaml extends NoCorefileInYaml {
  readonly place: readonly [line: number, column: number];
  readonly reason: string;

  constructor(file: string, reason: string, place: readonly [line: number, column: number] | undefined) {
    super(`${file}${place === undefined ? "" : `:${place.join(":")}`}: ${reason}`);
    this.place = place ?? [1, 1];
    this.reason = reason;
  }
}

export interface ConfigMaps {
  readonly corefiles: readonly FoundCorefile[];
  /** Keys of ConfigMaps without a Corefile. In a pod they lie in the folder `custom`. */
  readonly custom: readonly ImportableKey[];
  /** Values that are no strings. Kubernetes refuses a ConfigMap with them. */
  readonly notText: readonly UnusableKey[];
  /** The reason why there is neither; `undefined` if the text is no Kubernetes object. */
  readonly missing: NoCorefileInYaml | undefined;
}

/** `*.server` is imported between server blocks, `*.override` into the block `.:53`. */
const CUSTOM_KEY = /\.(server|override)$/;

/**
 * Reads all ConfigMaps of a YAML or JSON text, in any of its documents or in a List. A Corefile that is a YAML block scalar keeps
 * its place: the text around it becomes empty lines, and its indentation stays, which a Corefile ignores. A quoted Corefile has no
 * lines in the YAML and is named as a separate file.
 * @throws NoCorefileInYaml for text that has, or names, Kubernetes objects and is not valid YAML
 */
export function readConfigMaps({ text, file }: CorefileSource): ConfigMaps {
  const corefiles: FoundCorefile[] = [];
  const custom: ImportableKey[] = [];
  const others: string[] = [];
  const notText: UnusableKey[] = [];
  let isKubernetes = false;
  let fault: YAMLParseError | undefined;
  for (const document of parseAllDocuments(text)) {
    if (!("contents" in document)) continue;
    if (document.errors.length > 0) {
      fault ??= document.errors[0];
      continue;
    }
    for (const object of objectsIn(document.contents)) {
      isKubernetes ||= object.has("apiVersion") && object.has("kind");
      const alone = corefileAlone(object);
      if (alone !== undefined)
        corefiles.push({ source: inPlace(alone.scalar, alone.text, { text, file }), siblings: [] });
      const data = object.get("data", true);
      if (!isMap(data)) continue;
      const keys = keysOf(data, text, file);
      if (isConfigMap(object)) notText.push(...keysWithoutText(data, text, file));
      const corefile = data.get("Corefile", true);
      if (isScalar(corefile) && typeof corefile.value === "string") {
        const source = inPlace(corefile, corefile.value, { text, file });
        corefiles.push({ source, siblings: keys.filter(({ key }) => key !== "Corefile") });
      } else if (isCustom(object, keys)) custom.push(...keys);
      else others.push(...data.items.map(({ key }) => String(key)));
    }
  }
  if (fault !== undefined && (isKubernetes || YAML_NAME.test(file) || isManifest(text)))
    throw brokenYaml(file, fault);
  const isMissing = isKubernetes && corefiles.length === 0 && custom.length === 0 && notText.length === 0;
  return { corefiles, custom, notText, missing: isMissing ? missing(file, others) : undefined };
}

/** Where the tools of providers take a Corefile that is no ConfigMap: the cluster of kops, and the configuration of the add-on of EKS. */
const PLACES = [["spec", "kubeDNS", "externalCoreFile"], ["corefile"]];

function corefileAlone(object: YAMLMap): { readonly scalar: Scalar; readonly text: string } | undefined {
  for (const place of PLACES) {
    const scalar = object.getIn(place, true);
    if (isScalar(scalar) && typeof scalar.value === "string") return { scalar, text: scalar.value };
  }
  return undefined;
}

export const YAML_NAME = /\.(ya?ml|json)$/;

/** Whether a text that is perhaps not valid YAML was meant as a Kubernetes object. */
function isManifest(text: string): boolean {
  return /^["']?apiVersion["']?\s*:/m.test(text) && /^["']?kind["']?\s*:/m.test(text);
}

function isConfigMap(object: YAMLMap): boolean {
  const kind = object.get("kind");
  return kind === undefined || kind === "ConfigMap";
}

function brokenYaml(file: string, { message, linePos }: YAMLParseError): BrokenYaml {
  const [place] = linePos ?? [];
  const [reason = ""] = message.split(/ at line \d+|\n/);
  return new BrokenYaml(file, `not valid YAML: ${reason}`, place && [place.line, place.col]);
}

/** Recognized by name or by keys, because providers do not agree on a name. */
function isCustom(object: YAMLMap, keys: readonly ImportableKey[]): boolean {
  if (!isConfigMap(object)) return false;
  return (
    object.getIn(["metadata", "name"]) === "coredns-custom" || keys.some(({ key }) => CUSTOM_KEY.test(key))
  );
}

const MAX_KEYS = 10;
const KUBE_DNS_KEYS = ["stubDomains", "upstreamNameservers", "federations"];

function missing(file: string, keys: readonly string[]): NoCorefileInYaml {
  const found = keys.length > 0 ? `; 'data' has ${keys.slice(0, MAX_KEYS).join(", ")}` : "";
  const hint = keys.some((key) => KUBE_DNS_KEYS.includes(key))
    ? "; 'portolan migrate' makes a Corefile from the ConfigMap of kube-dns"
    : "";
  return new NoCorefileInYaml(
    `${file}: no Corefile in this YAML: expected a ConfigMap with the key 'Corefile' under 'data', or with keys '*.server' or '*.override'${found}${hint}`,
  );
}

/** The items of a List as `kubectl get` prints it. */
function objectsIn(contents: Node | null): YAMLMap[] {
  if (!isMap(contents)) return [];
  const items = contents.get("items", true);
  return [contents, ...(isSeq(items) ? items.items.filter((item) => isMap(item)) : [])];
}

/** Only the keys that belong to a Corefile: other values are no concern of this server. */
function keysWithoutText(data: YAMLMap, text: string, file: string): UnusableKey[] {
  return data.items.flatMap(({ key, value }) => {
    if (!isScalar(key)) return [];
    const name = String(key.value);
    const isText = isScalar(value) && (typeof value.value === "string" || value.value === null);
    if (isText || value === null || !(name === "Corefile" || CUSTOM_KEY.test(name))) return [];
    const start = key.range?.[0] ?? 0;
    const column = start - text.lastIndexOf("\n", start - 1);
    return [{ key: name, file, line: 1 + linesBetween(text, 0, start), column }];
  });
}

function keysOf(data: YAMLMap, text: string, file: string): ImportableKey[] {
  let line = 1;
  let counted = 0;
  return data.items.flatMap(({ key, value }) => {
    if (!isScalar(key) || !isScalar(value) || typeof value.value !== "string") return [];
    const name = String(key.value);
    const start = key.range?.[0] ?? 0;
    // Keys are in the order of the text, so that it is read once for all of them.
    line += linesBetween(text, counted, start);
    counted = start;
    const indentation = indentationOf(value, text);
    return [{ key: name, text: value.value, name: `${file} (${name})`, file, line, indentation }];
  });
}

function indentationOf({ type, range }: Scalar, text: string): number | undefined {
  if (type !== "BLOCK_LITERAL") return undefined;
  const [start, end] = range ?? [0, 0];
  const [, spaces = ""] = /\n( *)[^\s]/.exec(text.slice(start, end)) ?? [];
  return spaces.length;
}

function linesBetween(text: string, start: number, end: number): number {
  let lines = 0;
  for (let at = text.indexOf("\n", start); at !== -1 && at < end; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

function inPlace({ range, type }: Scalar, value: string, { text, file }: CorefileSource): CorefileSource {
  if (type !== "BLOCK_LITERAL") return { text: value, file: `${file} (Corefile)` };
  const [start, end] = range ?? [0, 0];
  const before = text.slice(0, start).replaceAll(/[^\n]+/g, "");
  return { text: `${before}${text.slice(text.indexOf("\n", start), end)}`, file };
}
