/** Migrates a ConfigMap with parts of a Corefile, such as `coredns-custom`: each key by itself. The rest of the YAML stays. */
import { isMap, isScalar, isSeq, parseAllDocuments, Scalar } from "yaml";
import type { Migrated, Notice } from "../../predecessors/migrate/notice.ts";
import type { CorefileSource } from "../../server/configuration/configuration.ts";
import type { ImportableKey } from "../config-maps/config-maps.ts";

/** @param convert migrates the text of a Corefile; places in its notices refer to its `file` */
export function migrateKeys(
  source: CorefileSource,
  keys: readonly ImportableKey[],
  convert: (corefile: CorefileSource, isWhole: boolean) => Migrated,
): Migrated {
  const notices: Notice[] = [];
  const changed = new Map<string, string>();
  for (const key of keys) {
    const migrated = migrateKey(key, convert);
    notices.push(...migrated.notices);
    if (migrated.text !== key.text) changed.set(key.key, migrated.text);
  }
  return { text: changed.size === 0 ? source.text : withKeys(source.text, changed), notices };
}

/** Directives outside of a block cannot be parsed, so a block is put around them and removed afterwards. */
function migrateKey(
  { key, text, name }: ImportableKey,
  convert: (corefile: CorefileSource, isWhole: boolean) => Migrated,
): Migrated {
  if (!key.endsWith(".override")) return convert({ text, file: name }, true);
  const end = text.endsWith("\n") ? "" : "\n";
  const migrated = convert({ text: `.:53 {\n${text}${end}}\n`, file: name }, false);
  const lines = migrated.text.trimEnd().split("\n").slice(1, -1);
  const notices = migrated.notices.map((notice) => {
    if (notice.span?.file !== name) return notice;
    return { ...notice, span: { ...notice.span, line: notice.span.line - 1 } };
  });
  return { text: `${lines.join("\n")}${end === "" ? "\n" : ""}`, notices };
}

function withKeys(yaml: string, texts: ReadonlyMap<string, string>): string {
  const documents = parseAllDocuments(yaml).flatMap((document) => ("contents" in document ? [document] : []));
  for (const { contents } of documents) {
    if (!isMap(contents)) continue;
    const items = contents.get("items", true);
    const objects = [contents, ...(isSeq(items) ? items.items : [])];
    for (const object of objects) {
      const data = isMap(object) ? object.get("data", true) : undefined;
      if (!isMap(data) || data.has("Corefile")) continue;
      for (const [key, text] of texts) {
        const scalar = data.get(key, true);
        if (!isScalar(scalar)) continue;
        scalar.value = text;
        scalar.type = Scalar.BLOCK_LITERAL;
      }
    }
  }
  return documents.map((document) => document.toString({ lineWidth: 0 })).join("");
}
