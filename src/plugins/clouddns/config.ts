import { Name } from "../../dns/index.ts";
import { ignored } from "../../plugin/config/options.ts";
import {
  type ConfigSchema,
  directive,
  duration,
  fallthrough,
  option,
  optional,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";

export interface ManagedZoneWord {
  readonly apex: Name;
  readonly project: string;
  readonly zone: string;
}

const managedZone: Value<ManagedZoneWord> = {
  expected: "a zone, its project and its managed zone, such as example.org.:my-project:my-zone",
  parse(word) {
    const parts = word.split(":");
    const [name = "", ...behind] = parts;
    // Projects of a domain have names such as `example.com:project`.
    const zone = behind.pop() ?? "";
    const project = behind.join(":");
    const apex = Name.tryParse(name);
    if (name === "" || project === "" || zone === "" || apex === undefined)
      return new ValueProblem(`invalid zone "${word}"`);
    return { apex, project, zone };
  },
};

/** Milliseconds. */
const DEFAULT_REFRESH = 60_000;

const endpoint: Value<string> = {
  expected: "a URL such as https://dns.googleapis.com",
  parse: (word) =>
    /^https?:$/.test(URL.parse(word)?.protocol ?? "") ? word : new ValueProblem(`'${word}' is not a URL`),
};

const declared = directive({
  args: { zones: rest(managedZone, 1) },
  options: {
    credentials: option({ file: optional(text("a file of credentials")) }),
    endpoint: single(endpoint),
    refresh: single(
      duration({
        min: 1,
        bareSeconds: true,
        problem: (word) => `refresh interval must be greater than 0: '${word}'`,
      }),
      DEFAULT_REFRESH,
    ),
    fallthrough: fallthrough(),
    upstream: ignored("names that a zone points to are always looked up through this server"),
  },
  occurrences: "each",
  check({ zones }, report, at) {
    const seen = new Set<string>();
    for (const { apex, project, zone } of zones) {
      const word = `${apex.toLowerCase()}:${project}:${zone}`;
      if (seen.has(word))
        report.error("PLUGIN_BAD_VALUE", at(), `conflict zone "${apex}:${project}:${zone}"`);
      seen.add(word);
    }
  },
});

export type CloudDnsConfig = typeof declared extends ConfigSchema<infer T> ? T : never;
export const cloudDnsConfig: ConfigSchema<CloudDnsConfig> = declared;
