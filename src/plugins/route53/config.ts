import { Name } from "../../dns/index.ts";
import { ignored } from "../../plugin/config/options.ts";
import {
  type ConfigSchema,
  directive,
  duration,
  fallthrough,
  option,
  optional,
  required,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";

export interface HostedZoneWord {
  readonly apex: Name;
  readonly id: string;
}

const DEFAULT_REFRESH = 60_000;

const hostedZone: Value<HostedZoneWord> = {
  expected: "a zone and the id of its hosted zone, such as example.org.:Z1D633PJN98FT9",
  parse(word) {
    const [name = "", id = "", ...more] = word.split(":");
    const apex = Name.tryParse(name);
    if (apex === undefined || name === "" || id === "" || more.length > 0)
      return new ValueProblem(`invalid zone "${word}"`);
    return { apex, id };
  },
};

const endpoint: Value<string> = {
  expected: "a URL such as https://route53.amazonaws.com",
  parse: (word) =>
    /^https?:$/.test(URL.parse(word)?.protocol ?? "") ? word : new ValueProblem(`'${word}' is not a URL`),
};

const declared = directive({
  args: { zones: rest(hostedZone, 1) },
  options: {
    aws_access_key: option({ id: required(text("the id of a key")), secret: required(text("its secret")) }),
    aws_endpoint: single(endpoint),
    credentials: option({ profile: required(text("a profile")), file: optional(text("a file")) }),
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
  check({ zones, aws_access_key: key, credentials }, report, at) {
    const seen = new Set<string>();
    for (const { apex, id } of zones) {
      const word = `${apex.toLowerCase()}:${id}`;
      if (seen.has(word)) report.error("PLUGIN_BAD_VALUE", at(), `conflict zone "${apex}:${id}"`);
      seen.add(word);
    }
    if (key !== undefined)
      report.warning(
        "PLUGIN_OPTION_IGNORED",
        at("aws_access_key"),
        "'aws_access_key' puts a secret in the Corefile: use a role, the environment or a credentials file instead",
      );
    if (key !== undefined && credentials !== undefined)
      report.error(
        "PLUGIN_BAD_VALUE",
        at("credentials"),
        "'credentials' and 'aws_access_key' cannot be used together",
      );
  },
});

export type Route53Config = typeof declared extends ConfigSchema<infer T> ? T : never;
export const route53Config: ConfigSchema<Route53Config> = declared;
