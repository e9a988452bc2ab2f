import { Name } from "../../dns/index.ts";
import {
  type ConfigSchema,
  choice,
  directive,
  duration,
  fallthrough,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { cloudNamed } from "./clouds.ts";

export interface ZoneWord {
  readonly group: string;
  /** The zone as written in the Corefile. */
  readonly zone: string;
  readonly apex: Name;
}

const zoneInGroup: Value<ZoneWord> = {
  expected: "a resource group and a zone, such as dns:example.org",
  parse(word) {
    const [group = "", zone = "", ...more] = word.split(":");
    const apex = Name.tryParse(zone);
    if (group === "" || zone === "" || more.length > 0 || apex === undefined)
      return new ValueProblem(`invalid resource group/zone: "${word}"`);
    return { group, zone, apex };
  },
};

const environment: Value<string> = {
  expected: "a cloud of Azure, such as AzurePublicCloud",
  parse: (word) =>
    cloudNamed(word) === undefined
      ? new ValueProblem(
          `cannot set azure environment: there is no cloud environment matching the name "${word}"`,
        )
      : word,
};

/** Milliseconds. */
const DEFAULT_REFRESH = 60_000;

const endpoint: Value<string> = {
  expected: "a URL such as https://management.azure.com",
  parse: (word) =>
    /^https?:$/.test(URL.parse(word)?.protocol ?? "") ? word : new ValueProblem(`'${word}' is not a URL`),
};

const declared = directive({
  args: { zones: rest(zoneInGroup, 1) },
  options: {
    tenant: single(text("the id of a tenant")),
    client: single(text("the id of a client")),
    secret: single(text("the client's secret")),
    subscription: single(text("the id of a subscription")),
    environment: single(environment),
    access: single(
      choice(["public", "private"], {
        problem: (word) => `invalid access value: can be public/private, found: ${word}`,
      }),
      "public",
    ),
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
  },
  occurrences: "each",
  check({ zones }, report, at) {
    const seen = new Set<string>();
    for (const { group, zone, apex } of zones) {
      const word = `${group}:${apex.toLowerCase()}`;
      if (seen.has(word)) report.error("PLUGIN_BAD_VALUE", at(), `conflicting zone: "${group}:${zone}"`);
      seen.add(word);
    }
  },
});

export type AzureConfig = typeof declared extends ConfigSchema<infer T> ? T : never;
export const azureConfig: ConfigSchema<AzureConfig> = declared;
