/** The directive's arguments and options, and those beyond CoreDNS. */
import type { Argument } from "../../plugin/config/arguments.ts";
import { ignored } from "../../plugin/config/options.ts";
import {
  type ConfigSchema,
  customDirective,
  directive,
  duration,
  fallthrough,
  flag,
  option,
  optionList,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
  zones,
} from "../../plugin/index.ts";

const endpoint: Value<string> = {
  expected: "a URL such as http://127.0.0.1:2379",
  parse(word) {
    const url = URL.parse(/^https?:\/\//.test(word) ? word : `http://${word}`);
    if (url === null || url.host === "" || /:\/\//.test(word.replace(/^https?:\/\//, "")))
      return new ValueProblem(`'${word}' is not a URL of an etcd server`);
    return `${url.protocol}//${url.host}`;
  },
};

const credentials: Argument<{ readonly user: string; readonly password: string } | undefined> = {
  read(cursor) {
    const [user, password, extra] = [cursor.take(), cursor.take(), cursor.peek()];
    if (user !== undefined && password !== undefined && extra === undefined)
      return { user: user.text, password: password.text };
    while (cursor.take() !== undefined);
    cursor.context.report.error(
      "PLUGIN_BAD_VALUE",
      cursor.owner.span,
      "credentials requires 2 arguments, username and password",
    );
    return undefined;
  },
  usage: () => "USERNAME PASSWORD",
};

/** Milliseconds. */
function leaseBound(name: string): Value<number> {
  return duration({ min: 0, bareSeconds: true, problem: (word) => `invalid ${name} value: '${word}'` });
}

const declared = directive({
  args: { zones: zones() },
  options: {
    path: single(text("a path such as skydns"), "skydns"),
    endpoint: option({ urls: rest(endpoint, 1) }),
    credentials: option({ login: credentials }),
    tls: option({ files: rest(text("a file")) }),
    "min-lease-ttl": single(leaseBound("min-lease-ttl"), 30_000),
    "max-lease-ttl": single(leaseBound("max-lease-ttl"), 24 * 60 * 60 * 1000),
    fallthrough: fallthrough(),
    no_apex_fallback: flag(),
    stubzones: flag(),
    skydns_config: flag(),
    read_through: flag(),
    upstream: optionList({ ignored: rest(text()) }),
    debug: ignored("CoreDNS ignores it as well"),
  },
  check(values, report, at) {
    if ((values.tls?.files.length ?? 0) > 3) {
      report.error("PLUGIN_BAD_VALUE", at("tls"), "tls takes a certificate, its key and a CA, or a CA alone");
    }
    if (values["min-lease-ttl"] > values["max-lease-ttl"]) {
      const message = "min-lease-ttl is greater than max-lease-ttl";
      report.error("PLUGIN_BAD_VALUE", at("min-lease-ttl"), message);
    }
    if (values.upstream.length > 0) {
      const message = "'upstream' has no effect: external names are resolved through this server";
      report.warning("PLUGIN_OPTION_IGNORED", at("upstream"), message);
    }
    if (values.read_through && values.skydns_config) {
      const message = "'skydns_config' has no effect beside 'read_through'";
      report.warning("PLUGIN_OPTION_IGNORED", at("skydns_config"), message);
    }
    if (values.read_through && values.stubzones) {
      const message = "'stubzones' has no effect beside 'read_through'";
      report.warning("PLUGIN_OPTION_IGNORED", at("stubzones"), message);
    }
  },
});

export type EtcdConfig = typeof declared extends ConfigSchema<infer T> ? T : never;

/** Only the first directive of a block counts, as in CoreDNS. */
export const config: ConfigSchema<EtcdConfig> = customDirective(
  declared.description,
  (occurrences, context) => {
    for (const { name } of occurrences.slice(1)) {
      const message = "only the first 'etcd' of a server block counts";
      context.report.warning("PLUGIN_REPEATED", name.span, message, {
        expected: "one 'etcd' with all zones, or a server block for each",
      });
    }
    return declared.parse(occurrences.slice(0, 1), context);
  },
);
