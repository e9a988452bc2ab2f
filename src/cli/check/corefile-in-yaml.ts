/** The Corefile of a ConfigMap, at the lines and columns that it has in the YAML. */
import { isMap, isScalar, isSeq, type Node, parseAllDocuments, type Scalar, type YAMLMap } from "yaml";
import type { CorefileSource } from "../../server/configuration/configuration.ts";

/** An object of Kubernetes without a Corefile: the wrong file, or the wrong key. */
export class NoCorefileInYaml extends Error {
  override readonly name = "NoCorefileInYaml";
}

/**
 * The same source, unless it is YAML or JSON with a Corefile among its `data`: then a text with that alone, in its place. What stands
 * around it becomes empty lines, and its indentation stays, which means nothing in a Corefile: so all places are those in the YAML. A
 * Corefile between quotation marks has no lines there, and is named as a file of its own.
 *
 * @throws NoCorefileInYaml
 */
export function corefileInYaml(source: CorefileSource): CorefileSource {
  const keys: string[] = [];
  let isKubernetes = false;
  for (const document of parseAllDocuments(source.text)) {
    if (!("contents" in document) || document.errors.length > 0) continue;
    for (const object of objectsIn(document.contents)) {
      isKubernetes ||= object.has("apiVersion") && object.has("kind");
      const scalar = object.getIn(["data", "Corefile"], true);
      if (isScalar(scalar) && typeof scalar.value === "string") return inPlace(scalar, scalar.value, source);
      const data = object.get("data", true);
      if (isMap(data)) keys.push(...data.items.map(({ key }) => String(key)));
    }
  }
  if (!isKubernetes) return source;
  const found = keys.length > 0 ? `; 'data' has ${keys.slice(0, MAX_KEYS).join(", ")}` : "";
  throw new NoCorefileInYaml(
    `${source.file}: no Corefile in this YAML: expected a ConfigMap with the key 'Corefile' under 'data'${found}`,
  );
}

const MAX_KEYS = 10;

/** Of a list, which `kubectl get` prints, its items. */
function objectsIn(contents: Node | null): YAMLMap[] {
  if (!isMap(contents)) return [];
  const items = contents.get("items", true);
  return [contents, ...(isSeq(items) ? items.items.filter((item) => isMap(item)) : [])];
}

function inPlace({ range, type }: Scalar, value: string, { text, file }: CorefileSource): CorefileSource {
  if (type !== "BLOCK_LITERAL") return { text: value, file: `${file} (Corefile)` };
  const [start, end] = range ?? [0, 0];
  const before = text.slice(0, start).replaceAll(/[^\n]+/g, "");
  return { text: `${before}${text.slice(text.indexOf("\n", start), end)}`, file };
}
