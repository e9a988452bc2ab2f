import { formatPlace } from "../corefile/diagnostic.ts";
import { formatServerKey, type ServerKey } from "../corefile/server-key.ts";
import { canonicalHost } from "../lib/net/listen-address.ts";
import { hasView } from "./listeners.ts";
import type { LintRule } from "./rule.ts";

/** Finds a zone that two blocks serve at one address in different spellings. The same spelling is an error already. */
export const sameAddress: LintRule = {
  code: "LINT_SAME_ADDRESS",
  about: "server blocks serve one zone at the same address, spelled differently",

  check({ blocks }, report) {
    const taken = new Map<string, { readonly key: ServerKey; readonly host: string }>();
    for (const block of blocks) {
      const { listenHosts, listensNowhere } = block.settings;
      if (listensNowhere || hasView(block)) continue;
      const told = new Set<ServerKey>();
      for (const host of listenHosts) {
        for (const key of block.keys) {
          const place = `${formatServerKey(key)} ${canonicalHost(host)}`;
          const first = taken.get(place);
          if (first === undefined) taken.set(place, { key, host });
          else if (first.host !== host && !block.keys.includes(first.key) && !told.has(key)) {
            told.add(key);
            report.warning(
              sameAddress.code,
              key.span,
              `queries to ${host} never reach '${key.zone}' here: ` +
                `the server block at ${formatPlace(first.key.span)} is bound to ${first.host}, which is the same`,
              {
                expected: "one server block for both",
                ...(canonicalHost(host) === "" && {
                  notes: ["0.0.0.0 and :: both mean all addresses, of IPv4 and of IPv6"],
                }),
              },
            );
          }
        }
      }
    }
  },
};
