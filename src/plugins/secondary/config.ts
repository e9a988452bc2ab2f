import {
  choice,
  directive,
  domainName,
  fallthrough,
  hostPort,
  integer,
  merged,
  optionList,
  required,
  rest,
  single,
  text,
  zones,
} from "../../plugin/index.ts";

/** Octets: some ten million records. */
const DEFAULT_LIMIT = 1024;

export const secondaryConfig = merged(
  directive({
    args: { zones: zones() },
    options: {
      transfer: optionList({ from: required(choice(["from"])), address: rest(hostPort(53), 1) }),
      key: single(domainName()),
      directory: single(text("a folder")),
      max_size: single(integer({ min: 1, max: 4096 }), DEFAULT_LIMIT),
      fallthrough: fallthrough(),
    },
    occurrences: "each",
    check(config, report, at) {
      if (config.transfer.length === 0)
        report.error("SECONDARY_PRIMARY_MISSING", at(), "secondary zones require a transfer from property");
    },
  }),
);
