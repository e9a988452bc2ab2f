import type { Token } from "../corefile/tokens.ts";
import type { Directive } from "../corefile/tree.ts";
import type { LintRule } from "./rule.ts";

/** Finds plugins that read or make metadata in a block without `metadata`. */
export const metadataOff: LintRule = {
  code: "LINT_METADATA_OFF",
  about: "an option needs the plugin 'metadata', which the server block does not have",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      if (directives.some(({ name }) => name.text === "metadata")) continue;
      for (const directive of directives) {
        for (const word of wordsOfMetadata(directive)) {
          const effect = directive.name.text === "rewrite" ? "the rule never matches" : "it has no effect";
          const message = `'${word.text}' needs the plugin 'metadata' in this server block: ${effect}`;
          report.warning(metadataOff.code, word.span, message, {
            expected: "a line 'metadata' in the server block",
          });
        }
      }
    }
  },
};

function wordsOfMetadata(directive: Directive): readonly Token[] {
  const lines = directive.block ?? [];
  if (directive.name.text === "proxyproto")
    return lines.map(({ name }) => name).filter(({ text }) => text === "tlv_metadata");
  if (directive.name.text !== "rewrite") return [];
  const rules = [directive.args, ...lines.map(({ name, args }) => [name, ...args])];
  return rules.flatMap((words) => labelWord(words) ?? []);
}

/** The word `metadata` of `[continue|stop] name regex FROM TO metadata {plugin/label}`, if TO has a label in it. */
function labelWord(words: readonly Token[]): Token | undefined {
  const hasMode = ["continue", "stop"].includes(words[0]?.text ?? "");
  const [field, kind, , to, word] = hasMode ? words.slice(1) : words;
  if (field?.text !== "name" || kind?.text.toLowerCase() !== "regex") return undefined;
  return word?.text === "metadata" && /\{[^}]*\//.test(to?.text ?? "") ? word : undefined;
}
