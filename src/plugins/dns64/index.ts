/** `dns64`: IPv6 addresses for names that have only IPv4 addresses. */
import { prefixValue } from "../../plugin/config/prefix-value.ts";
import { definePlugin, directive, flag, merged, optional, single } from "../../plugin/index.ts";
import { Dns64 } from "./dns64.ts";
import { Nat64Prefix } from "./nat64-prefix.ts";

const prefix = prefixValue(
  "an IPv6 prefix of 32, 40, 48, 56, 64, 72, 80, 88 or 96 bits, such as 64:ff9b::/96",
  (word) => Nat64Prefix.parse(word),
);

export default definePlugin({
  name: "dns64",
  summary: "Synthesizes AAAA records from A records, for clients behind NAT64 (RFC 6147).",
  // Lines of a block add up: the last prefix, and the flags of all.
  config: merged(
    directive({
      args: { given: optional(prefix) },
      options: { prefix: single(prefix), translate_all: flag(), allow_ipv4: flag(), translate_ptr: flag() },
      occurrences: "each",
      check({ given, prefix: other }, report, at) {
        if (given === undefined || other === undefined) return;
        const message = `the line of 'dns64' has a prefix too: '${other}' counts`;
        report.warning("PLUGIN_OPTION_REPEATED", at("prefix"), message);
      },
    }),
  ),
  create(lines, { metrics }) {
    const prefixes = lines.map((line) => line.prefix ?? line.given);
    return new Dns64(
      {
        prefix: prefixes.findLast((given) => given !== undefined) ?? prefix.wellKnown(),
        translateAll: lines.some((line) => line.translate_all),
        allowIpv4: lines.some((line) => line.allow_ipv4),
        translatePtr: lines.some((line) => line.translate_ptr),
      },
      metrics,
    );
  },
});
