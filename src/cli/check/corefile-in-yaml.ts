/** The Corefile of a ConfigMap, at the lines and columns that it has in the YAML. */
import { isMap, isScalar, parseAllDocuments, type Scalar } from "yaml";
import type { CorefileSource } from "../../server/configuration/configuration.ts";

/**
 * The same source, unless it is YAML with a Corefile among its `data`: then a text with that alone, in its place. What stands around it
 * becomes empty lines, and its indentation stays, which means nothing in a Corefile: so all places are those in the YAML.
 */
export function corefileInYaml(source: CorefileSource): CorefileSource {
  if (!/^\s*["']?(apiVersion|kind|data|metadata|items)["']?\s*:/m.test(source.text)) return source;
  for (const document of parseAllDocuments(source.text)) {
    if (!("contents" in document) || !isMap(document.contents)) continue;
    const scalar = document.contents.getIn(["data", "Corefile"], true);
    if (isScalar(scalar) && typeof scalar.value === "string")
      return { ...source, text: inPlace(scalar, scalar.value, source.text) };
  }
  return source;
}

function inPlace({ range, type }: Scalar, value: string, text: string): string {
  const [start, end] = range ?? [0, 0];
  const before = text.slice(0, start).replaceAll(/[^\n]+/g, "");
  // Only a literal block has its lines as they are; of others the line where they begin is all that can be told.
  if (type !== "BLOCK_LITERAL") return `${before}${value}`;
  return `${before}${text.slice(text.indexOf("\n", start), end)}`;
}
