import type { Token } from "../../corefile/tokens.ts";
import { Name } from "../../dns/index.ts";
import type { Argument } from "../../plugin/config/arguments.ts";
import { placeInTokens } from "../../plugin/config/source-text.ts";
import {
  COMBINED_FORMAT,
  COMMON_FORMAT,
  placeholderProblem,
  unknownPlaceholders,
} from "../../plugin/facts/line-format.ts";
import { JSON_FORMAT } from "./query-log.ts";

export interface ScopesAndFormat {
  /** A line applies to queries for names at or below one of these. */
  readonly scopes: readonly Name[];
  readonly format: string;
}

/** The arguments of `log`: names, and a format if there is more than one word and the last contains a brace. */
export function scopesAndFormat(): Argument<ScopesAndFormat> {
  return {
    read(cursor) {
      const { report } = cursor.context;
      const names: Token[] = [];
      for (let token = cursor.take(); token !== undefined; token = cursor.take()) names.push(token);
      const last = names.at(-1);
      if (last === undefined) return { scopes: [Name.root], format: COMMON_FORMAT };
      const hasFormat = names.length > 1 && last.text.includes("{");
      if (hasFormat) names.pop();
      if (names.length === 1 && !hasFormat && last.text.includes("{")) {
        report.warning("LOG_FORMAT_AS_NAME", last.span, "a single argument is a name, not a format", {
          expected: `a name before the format: log . "${last.text}"`,
        });
      }
      const scopes = names.flatMap((token) => {
        const scope = Name.tryParse(token.text);
        if (scope !== undefined) return [scope];
        report.warning("PLUGIN_BAD_ZONE", token.span, `'${token.text}' is not a name: it matches no query`);
        return [];
      });
      if (hasFormat && last.text !== JSON_FORMAT && last.text.includes(JSON_FORMAT))
        report.warning(
          "LOG_JSON_IN_FORMAT",
          last.span,
          "'{json}' is a complete format and cannot be part of one",
          {
            expected: `the word alone: log . ${JSON_FORMAT}`,
          },
        );
      if (hasFormat)
        for (const unknown of unknownPlaceholders(last.text, ["{common}", "{combined}", JSON_FORMAT]))
          report.warning(
            "LOG_UNKNOWN_PLACEHOLDER",
            placeInTokens([last], unknown),
            placeholderProblem(unknown),
            { suggestion: unknown.meant },
          );
      return { scopes, format: hasFormat ? expand(last.text) : COMMON_FORMAT };
    },
    usage: () => "[NAMES...] [FORMAT]",
  };
}

function expand(format: string): string {
  return format.replaceAll("{common}", COMMON_FORMAT).replaceAll("{combined}", COMBINED_FORMAT);
}
