import type { Name } from "../../dns/index.ts";
import { type HostPort, parseHostPort } from "../../plugin/config/values.ts";
import {
  type ConfigSchema,
  directive,
  domainName,
  ipAddress,
  merged,
  optionList,
  rest,
  single,
  type Value,
  ValueProblem,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

export interface TransferConfig {
  readonly zones: ZoneList;
  readonly to: readonly { readonly address: readonly (HostPort | "*")[] }[];
  readonly source: string | undefined;
  /** Name of a TSIG key. */
  readonly key: Name | undefined;
}

const address: Value<HostPort | "*"> = {
  expected: "an IP address, with a port if it is not 53, or * for all clients",
  parse: (word) =>
    word === "*"
      ? "*"
      : (parseHostPort(word, 53) ?? new ValueProblem(`must specify an IP address: \`${word}'`)),
};

export const transferConfig: ConfigSchema<readonly TransferConfig[]> = merged(
  directive({
    args: { zones: zones() },
    options: {
      to: optionList({ address: rest(address, 1) }),
      source: single(ipAddress((word) => `invalid source address "${word}"`)),
      key: single(domainName()),
    },
    occurrences: "each",
    check(config, report, at) {
      if (config.to.length === 0) report.error("TRANSFER_TO_MISSING", at(), "'to' is required");
    },
  }),
);
