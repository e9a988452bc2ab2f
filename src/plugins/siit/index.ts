/** `siit`: makes A records for names whose IPv6 addresses embed IPv4 addresses (RFC 7915, RFC 7757). */

import { type IpPrefix, parseIpPrefix } from "../../lib/net/prefix-set.ts";
import { prefixValue } from "../../plugin/config/prefix-value.ts";
import {
  definePlugin,
  directive,
  flag,
  merged,
  optionList,
  required,
  single,
  type Value,
  ValueProblem,
} from "../../plugin/index.ts";
import { AddressMap, TranslationPrefix } from "./address-map.ts";
import { Siit } from "./siit.ts";

const prefix = prefixValue("an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits, such as 64:ff9b::/96", (word) =>
  TranslationPrefix.parse(word),
);

const network = (family: 4 | 6): Value<IpPrefix> => ({
  expected: `an IPv${family} address or prefix`,
  parse(word) {
    const read = parseIpPrefix(word);
    if (read === undefined) return new ValueProblem(`invalid IP address: "${word}"`);
    return read.octets.length === (family === 4 ? 4 : 16)
      ? read
      : new ValueProblem(`invalid IPv${family} address: "${word}"`);
  },
});

export default definePlugin({
  name: "siit",
  summary: "Makes A records out of AAAA records that stand for IPv4 addresses (RFC 6052, RFC 7757).",
  // Lines of a block add up: the last prefix, and the mappings of all.
  config: merged(
    directive({
      options: {
        ipv6_prefix: single(prefix),
        eam: optionList({ ipv4: required(network(4)), ipv6: required(network(6)) }),
        translate_ptr: flag(),
      },
      occurrences: "each",
      check({ ipv6_prefix: chosen, eam }, report, at) {
        const reason = chosen?.reasonToBeEmpty();
        if (reason !== undefined) {
          const message = `no AAAA record is within ${chosen}: these are ${reason}`;
          report.warning("SIIT_PREFIX_EMPTY", at("ipv6_prefix"), message);
        }
        for (const { ipv4, ipv6 } of eam) {
          if (32 - ipv4.length <= 128 - ipv6.length) continue;
          const message = `the IPv6 prefix of a mapping has too few bits left: /${ipv4.length} of IPv4 needs /${96 + ipv4.length} or shorter, not /${ipv6.length}`;
          report.error("SIIT_MAPPING_LENGTH", at("eam"), message);
        }
      },
    }),
  ),
  create(lines, { metrics }) {
    const chosen =
      lines.findLast((line) => line.ipv6_prefix !== undefined)?.ipv6_prefix ?? prefix.wellKnown();
    const addresses = new AddressMap(
      chosen,
      lines.flatMap(({ eam }) => eam),
    );
    const translatePtr = lines.some((line) => line.translate_ptr);
    return new Siit(addresses, translatePtr, metrics);
  },
});
