import { formatPlace } from "../../corefile/diagnostic.ts";
import type { ServerKey } from "../../corefile/server-key.ts";
import type { LintBlock } from "./lint-block.ts";
import type { LintRule } from "./rule.ts";

interface PlacedKey {
  readonly block: LintBlock;
  readonly key: ServerKey;
}

/** One port on all addresses in one block, and on an address of its own in another. */
export const mixedBind: LintRule = {
  code: "LINT_BIND_MIXED",
  about: "server blocks share a port, and only some of them have a bind",

  check({ blocks }, report) {
    for (const keys of keysByPort(blocks)) {
      const bound = keys.find(({ block }) => block.settings.listenHosts.length > 0);
      const wild = keys.find(({ block }) => block.settings.listenHosts.length === 0);
      // For one and the same zone that is an error already.
      if (bound === undefined || wild === undefined || bound.key.zone === wild.key.zone) continue;
      const [host = ""] = bound.block.settings.listenHosts;
      report.warning(
        mixedBind.code,
        bound.key.span,
        `port ${bound.key.port} is bound to ${host} here and to all addresses for '${wild.key.zone}': ` +
          `a query to ${host} never reaches '${wild.key.zone}'`,
        {
          expected: `a bind in both server blocks, or in neither; the other is at ${formatPlace(wild.key.span)}`,
        },
      );
    }
  },
};

function keysByPort(blocks: readonly LintBlock[]): Iterable<readonly PlacedKey[]> {
  const ports = new Map<number, PlacedKey[]>();
  for (const block of blocks) {
    if (block.settings.listensNowhere) continue;
    for (const key of block.keys) {
      // Port 0 is another one each time.
      if (key.port === 0) continue;
      const others = ports.get(key.port);
      if (others === undefined) ports.set(key.port, [{ block, key }]);
      else others.push({ block, key });
    }
  }
  return ports.values();
}
