import { parseHostPort } from "../plugin/config/values.ts";
import { canonicalAddress } from "./canonical-address.ts";
import type { LintRule } from "./rule.ts";

/** Finds an upstream that is listed twice in one `forward`. It still gets only one share of the queries. */
export const upstreamTwice: LintRule = {
  code: "LINT_UPSTREAM_TWICE",
  about: "a forward names one upstream twice",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      for (const { name, args } of directives) {
        if (name.text !== "forward") continue;
        const seen = new Set<string>();
        for (const { text, span } of args.slice(1)) {
          // An unset variable has its own error.
          if (text === "") continue;
          const place = placeOf(text);
          if (seen.has(place))
            report.warning(
              upstreamTwice.code,
              span,
              `'${text}' is already in this 'forward': it counts once`,
            );
          seen.add(place);
        }
      }
    }
  },
};

/** A text that is equal for all spellings of an upstream. Files and hosts stay as written. */
function placeOf(text: string): string {
  const [, scheme = "dns", rest = text] = /^([a-z]+):\/\/(.*)$/i.exec(text) ?? [];
  const place = parseHostPort(rest, ["tls", "quic"].includes(scheme.toLowerCase()) ? 853 : 53);
  const address = place && canonicalAddress(place.host);
  return address === undefined ? text : `${scheme.toLowerCase()}://${address}:${place?.port}`;
}
