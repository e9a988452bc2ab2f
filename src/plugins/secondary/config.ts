import type { Name } from "../../dns/index.ts";
import { tlsFiles } from "../../plugin/config/tls-files.ts";
import { parseHostPort } from "../../plugin/config/values.ts";
import {
  choice,
  directive,
  domainName,
  fallthrough,
  flag,
  integer,
  merged,
  option,
  optionList,
  required,
  rest,
  single,
  text,
  type Value,
  ValueProblem,
  zones,
} from "../../plugin/index.ts";
import { splitServerName, upstreamAddress } from "../../upstream/config/address.ts";
import type { Primary } from "../../zones/transfer/primary.ts";

const MIB = 1024 * 1024;
/** Enough for some ten million records. */
const MOST_BY_DEFAULT = 1024 * MIB;
/** Enough for some ten thousand records. */
const LEAST_BY_DEFAULT = 4 * MIB;

/**
 * Bound for the bytes of a zone. During a transfer the old version exists beside the new one: the two get half of the
 * process's memory limit. @param maxSize `max_size`, in MiB @param memoryLimit of the process, if there is one
 */
export function zoneLimit(maxSize: number | undefined, memoryLimit: number | undefined): number {
  if (maxSize !== undefined) return maxSize * MIB;
  if (memoryLimit === undefined) return MOST_BY_DEFAULT;
  return Math.min(MOST_BY_DEFAULT, Math.max(LEAST_BY_DEFAULT, Math.floor(memoryLimit / 4)));
}

const primary: Value<Primary> = {
  expected:
    "an IP address, with a port if it is not 53, or tls:// and an IP address, with a port if it is not 853",
  parse(word) {
    const isEncrypted = /^tls:\/\//i.test(word);
    const { text: place, serverName } = isEncrypted
      ? splitServerName(word.slice("tls://".length))
      : { text: word, serverName: undefined };
    const parsed = parseHostPort(place, isEncrypted ? 853 : 53);
    const address = parsed && upstreamAddress(parsed.host, parsed.port);
    if (address === undefined) return new ValueProblem(`must specify an IP address: '${word}'`);
    const shown = isEncrypted ? `tls://${address.text}` : address.text;
    return { address, text: shown, isEncrypted, serverName };
  },
};

/** CoreDNS parses these as zones; with a colon they would be a scheme or a port. */
const member: Value<Name> = {
  expected: "a zone",
  parse(word, context) {
    return word.includes(":") ? new ValueProblem(`not a zone: '${word}'`) : domainName().parse(word, context);
  },
};

export const secondaryConfig = merged(
  directive({
    args: { zones: zones() },
    options: {
      transfer: optionList({ from: required(choice(["from"])), address: rest(primary, 1) }),
      tls: option({ files: tlsFiles }),
      tls_servername: single(text("the name in the certificate of the primaries")),
      catalog: optionList({ members: rest(member) }),
      key: single(domainName()),
      axfr_only: flag(),
      directory: single(text("a folder")),
      max_size: single(integer({ min: 1, max: 4096 })),
      fallthrough: fallthrough(),
    },
    occurrences: "each",
    check(config, report, at) {
      if (config.transfer.length === 0)
        report.error("SECONDARY_PRIMARY_MISSING", at(), "secondary zones require a transfer from property");
      const isEncrypted = config.transfer.some(({ address }) => address.some((each) => each.isEncrypted));
      for (const name of ["tls", "tls_servername"] as const) {
        if (config[name] !== undefined && !isEncrypted)
          report.warning("PLUGIN_OPTION_IGNORED", at(name), `'${name}' has no effect: no primary is tls://`);
      }
    },
  }),
);
