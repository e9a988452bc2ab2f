/** `dnstap`: sends copies of queries and replies to a collector. */

import { placeholderProblem, unknownPlaceholders } from "../../plugin/facts/line-format.ts";
import {
  definePlugin,
  directive,
  flag,
  option,
  optional,
  required,
  rest,
  single,
  text,
} from "../../plugin/index.ts";
import { Dnstap, MISSING_FILES } from "./dnstap.ts";
import { TapTarget } from "./target.ts";

export default definePlugin({
  name: "dnstap",
  summary: "Sends copies of queries and responses to a dnstap collector.",
  config: directive({
    args: { words: rest(text(), 1) },
    options: {
      identity: single(text()),
      version: single(text()),
      extra: single(text()),
      skipverify: flag(),
      tls: option({ cert: required(text()), key: required(text()), ca: optional(text()) }),
    },
    occurrences: "each",
    check({ words, tls, skipverify, extra }, report, at) {
      const target = TapTarget.parse(words);
      if (typeof target === "string") {
        report.error("PLUGIN_BAD_VALUE", at(), target, {
          expected: "dnstap [listen] SOCKET [full] [WRITEBUF] [QUEUE]",
        });
        return;
      }
      if (tls !== undefined && !target.listens)
        report.error(
          "PLUGIN_BAD_VALUE",
          at("tls"),
          "'tls' is only for 'dnstap listen': reach a collector over TLS with tls://HOST:PORT",
        );
      if (target.listens && target.isTls && tls === undefined)
        report.warning("DNSTAP_TLS", at(), `${MISSING_FILES}: no reader can connect`, {
          expected: "tls CERT KEY in the block of the directive",
        });
      if (target.listens && !target.isTls && tls !== undefined)
        report.warning("DNSTAP_TLS", at("tls"), "'tls' has no effect without tls://");
      if (skipverify && !target.isTls)
        report.warning("DNSTAP_SKIPVERIFY", at("skipverify"), "'skipverify' has no effect without tls://");
      for (const unknown of unknownPlaceholders(extra ?? ""))
        report.warning("DNSTAP_UNKNOWN_PLACEHOLDER", at("extra"), placeholderProblem(unknown), {
          suggestion: unknown.meant,
        });
    },
  }),
  create: ({ words, ...rest }, site) => {
    const target = TapTarget.parse(words);
    if (typeof target === "string") throw new RangeError(target);
    return new Dnstap({ target, ...rest }, site);
  },
});
