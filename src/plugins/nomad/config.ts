import { Name } from "../../dns/index.ts";
import {
  type ConfigSchema,
  directive,
  domainName,
  fallthrough,
  integer,
  optional,
  optionList,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";

const DEFAULT_ZONE = Name.parse("service.nomad.");
/** Seconds. */
const DEFAULT_TTL = 30;

const address: Value<string> = {
  expected: "a URL such as http://127.0.0.1:4646",
  parse(word) {
    const url = URL.parse(word);
    const isUsable =
      url !== null && (/^https?:$/.test(url.protocol) ? url.host !== "" : url.protocol === "unix:");
    return isUsable ? word : new ValueProblem(`'${word}' is not the URL of a Nomad agent`);
  },
};

const declared = directive({
  args: { zone: optional(domainName(), DEFAULT_ZONE) },
  options: {
    address: optionList({ urls: rest(address, 1) }),
    token: single(text("an ACL token")),
    token_file: single(text("a file with an ACL token")),
    filter: optionList({ words: rest(text(), 1) }),
    ttl: single(integer({ min: 0, max: 3600 }), DEFAULT_TTL),
    fallthrough: fallthrough(),
  },
  occurrences: "each",
  check(config, report, at) {
    if (config.token !== undefined && config.token_file !== undefined)
      report.error("PLUGIN_BAD_VALUE", at("token_file"), "'token' and 'token_file' cannot be used together");
  },
});

export type NomadConfig = typeof declared extends ConfigSchema<infer T> ? T : never;
export const nomadConfig: ConfigSchema<NomadConfig> = declared;
