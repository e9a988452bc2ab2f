import type { Directive } from "../corefile/tree.ts";
import { formatIpAddress, parseIpAddress } from "../lib/net/ip-address.ts";
import { optionLines } from "../plugin/contract/zone-claims.ts";
import type { LintRule } from "./rule.ts";

/**
 * Finds `dns64` and `siit` with the same prefix: an address in it may be that of an IPv4 host behind a NAT64, or of an IPv6 host
 * that has an IPv4 address. The well-known prefix is for the former (RFC 6052 section 3.2).
 */
export const samePrefix: LintRule = {
  code: "LINT_SAME_PREFIX",
  about: "'dns64' and 'siit' translate with the same prefix",

  check({ blocks }, report) {
    for (const { directives } of blocks) {
      const [nat64, stateless] = ["dns64", "siit"].map((plugin) =>
        directives.findLast(({ name }) => name.text === plugin),
      );
      if (nat64 === undefined || stateless === undefined) continue;
      const prefix = prefixOf(stateless, "ipv6_prefix");
      if (prefix === undefined || prefix !== prefixOf(nat64, "prefix")) continue;
      const message = `'siit' has the prefix of 'dns64', ${prefix}: an address in it stands for an IPv4 host behind the NAT64, and for an IPv6 host with an IPv4 address`;
      report.warning(samePrefix.code, stateless.name.span, message, {
        expected: "'ipv6_prefix' with a prefix of your own network",
      });
    }
  },
};

/** RFC 6052 section 2.1. */
const WELL_KNOWN = "64:ff9b::/96";

/** In one spelling; `undefined` for an invalid word. */
function prefixOf(directive: Directive, option: string): string | undefined {
  const word = optionLines(directive, option).at(-1)?.args[0]?.text ?? directive.args[0]?.text ?? WELL_KNOWN;
  const [address = "", length] = word.split("/");
  const octets = parseIpAddress(address);
  return octets === undefined ? undefined : `${formatIpAddress(octets)}/${length}`;
}
