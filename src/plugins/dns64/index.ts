/** `dns64`: IPv6 addresses for names that have only IPv4 addresses. */
import {
  definePlugin,
  directive,
  flag,
  optional,
  single,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { Dns64 } from "./dns64.ts";
import { Nat64Prefix } from "./nat64-prefix.ts";

/** RFC 6052 section 2.1. */
const WELL_KNOWN = "64:ff9b::/96";

const prefix: Value<Nat64Prefix> = {
  expected: "an IPv6 prefix of 32, 40, 48, 56, 64, 72, 80, 88 or 96 bits, such as 64:ff9b::/96",
  parse(word) {
    const read = Nat64Prefix.parse(word);
    return typeof read === "string" ? new ValueProblem(read) : read;
  },
};

export default definePlugin({
  name: "dns64",
  summary: "Synthesizes AAAA records from A records, for clients behind NAT64 (RFC 6147).",
  config: directive({
    args: { given: optional(prefix) },
    options: { prefix: single(prefix), translate_all: flag(), allow_ipv4: flag(), translate_ptr: flag() },
    occurrences: "last",
    check({ given, prefix: other }, report, at) {
      if (given === undefined || other === undefined) return;
      const message = `the line of 'dns64' has a prefix too: '${other}' counts`;
      report.warning("PLUGIN_OPTION_REPEATED", at("prefix"), message);
    },
  }),
  create: (config, { metrics }) =>
    new Dns64(
      {
        prefix: config.prefix ?? config.given ?? Nat64Prefix.of(WELL_KNOWN),
        translateAll: config.translate_all,
        allowIpv4: config.allow_ipv4,
        translatePtr: config.translate_ptr,
      },
      metrics,
    ),
});
