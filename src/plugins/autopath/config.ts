/** `[ZONES...] RESOLV-CONF` or `[ZONES...] @PLUGIN`: the last word is never a zone. */
import type { Token } from "../../corefile/tokens.ts";
import type { Name } from "../../dns/name.ts";
import { type Argument, INVALID } from "../../plugin/config/arguments.ts";
import { parseZones } from "../../plugin/config/values.ts";
import { ValueProblem, ZoneList } from "../../plugin/index.ts";

export interface AutopathConfig {
  readonly zones: ZoneList;
  /** The plugin that provides search paths, or the file with one path for all clients. */
  readonly source: { readonly plugin: string } | { readonly file: string };
}

const EXPECTED = "the path of a resolv.conf, or @ and the name of a plugin such as @kubernetes";

export function zonesAndSource(): Argument<AutopathConfig> {
  return {
    read(cursor) {
      const words: Token[] = [];
      for (let token = cursor.take(); token !== undefined; token = cursor.take()) words.push(token);
      const last = words.pop();
      if (last === undefined || last.text === "@") {
        const message = "no resolv-conf specified";
        const { report } = cursor.context;
        report.error("PLUGIN_ARGUMENT_MISSING", (last ?? cursor.owner).span, message, { expected: EXPECTED });
        return INVALID;
      }
      const names: Name[] = [];
      for (const { text, span } of words) {
        const parsed = parseZones(text);
        if (parsed instanceof ValueProblem) {
          const message = `${parsed.message}: it is ignored`;
          cursor.context.report.warning("PLUGIN_BAD_ZONE", span, message, { expected: "a zone" });
        } else {
          names.push(...parsed);
        }
      }
      const zones = new ZoneList(words.length > 0 ? names : cursor.context.zones);
      const { text } = last;
      return { zones, source: text.startsWith("@") ? { plugin: text.slice(1) } : { file: text } };
    },
    usage: () => "[ZONES...] RESOLV-CONF|@PLUGIN",
  };
}
