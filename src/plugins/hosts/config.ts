import type { DiagnosticSink } from "../../corefile/diagnostic.ts";
import type { Directive } from "../../corefile/tree.ts";
import { parseScopedIpAddress } from "../../lib/net/ip-address.ts";
import { nearestWord } from "../../lib/text/nearest-word.ts";
import { parseGoDuration } from "../../lib/time/duration.ts";
import {
  type ConfigSchema,
  customDirective,
  directive,
  type Fallthrough,
  fallthrough,
  flag,
  optional,
  single,
  text,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

export interface HostsConfig {
  readonly file: string;
  readonly zones: ZoneList;
  /** Seconds. */
  readonly ttl: number;
  readonly no_reverse: boolean;
  /** Milliseconds, 0 for never. */
  readonly reload: number;
  readonly fallthrough: Fallthrough;
  readonly fallthrough_unsupported: boolean;
  /** Lines in the format of the file. */
  readonly inline: readonly string[];
}

const ttl: Value<number> = {
  expected: "a number of seconds from 1 to 65535",
  parse(word) {
    if (!/^[+-]?\d+$/.test(word)) return new ValueProblem("ttl needs a number of second");
    const seconds = Number(word);
    return seconds >= 1 && seconds <= 65_535 ? seconds : new ValueProblem("ttl provided is invalid");
  },
};

const reloadInterval: Value<number> = {
  expected: "a duration such as 5s, or 0s for never",
  parse(word) {
    const milliseconds = parseGoDuration(word);
    if (milliseconds === undefined) return new ValueProblem(`invalid duration for reload '${word}'`);
    if (milliseconds < 0) return new ValueProblem(`invalid negative duration for reload '${word}'`);
    return milliseconds;
  },
};

const declared = directive({
  args: { file: optional(text("a path"), "/etc/hosts"), zones: zones() },
  options: {
    ttl: single(ttl, 3600, { overlook: true }),
    no_reverse: flag({ overlook: true }),
    reload: single(reloadInterval, 5_000),
    fallthrough: fallthrough(),
    fallthrough_unsupported: flag(),
  },
  check(config, report, at) {
    if (!config.fallthrough_unsupported || config.fallthrough.zones.zones.length > 0) return;
    report.error(
      "HOSTS_FALLTHROUGH_MISSING",
      at("fallthrough_unsupported"),
      "fallthrough_unsupported requires fallthrough",
    );
  },
});

/** The declared options. Lines that begin with an IP address are removed before they are parsed. */
export const hostsConfig: ConfigSchema<HostsConfig> = customDirective(
  declared.description,
  (occurrences, context) => {
    const separated = occurrences.map((occurrence) => separateInlineLines(occurrence, context.report));
    const configs = declared.parse(
      separated.map(({ rest }) => rest),
      context,
    );
    return configs?.map((config, index) => ({ ...config, inline: separated[index]?.inline ?? [] }));
  },
);

function separateInlineLines(
  occurrence: Directive,
  report: DiagnosticSink,
): { readonly rest: Directive; readonly inline: readonly string[] } {
  const options = declared.description.options.map(({ name }) => name);
  const inline: string[] = [];
  const rest: Directive[] = [];
  let afterFallthrough = false;
  for (const line of occurrence.block ?? []) {
    const word = line.name.text;
    if (line.block === undefined && parseScopedIpAddress(word) !== undefined) {
      inline.push([word, ...line.args.map((arg) => arg.text)].join(" "));
    } else if (options.includes(word) || afterFallthrough || line.block !== undefined) {
      rest.push(line);
    } else {
      // CoreDNS treats any other line here as a line of the file, and ignores bad ones.
      report.warning(
        "HOSTS_LINE_IGNORED",
        line.name.span,
        `'${word}' is neither an option nor an IP address: the line is ignored`,
        {
          expected: `an IP address, or one of ${options.join(", ")}`,
          suggestion: nearestWord(word, options),
        },
      );
    }
    afterFallthrough ||= word === "fallthrough";
  }
  return { rest: occurrence.block === undefined ? occurrence : { ...occurrence, block: rest }, inline };
}
