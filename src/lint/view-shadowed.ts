import { formatPlace } from "../corefile/diagnostic.ts";
import { formatServerKey } from "../corefile/server-key.ts";
import { optionLines } from "../plugin/contract/zone-claims.ts";
import { constantOf } from "./constant-expression.ts";
import type { LintBlock } from "./lint-block.ts";
import { hasView } from "./listeners.ts";
import type { LintRule } from "./rule.ts";

/** Finds a server block with a view that gets no queries because an earlier block takes them all. */
export const viewShadowed: LintRule = {
  code: "LINT_VIEW_SHADOWED",
  about: "a server block takes all queries that the view of a later one could take",

  check({ blocks }, report) {
    // By each key: a configuration may have thousands of blocks, and only those with a common key matter.
    const before = new Map<string, LintBlock[]>();
    for (const block of blocks) {
      const [first] = block.keys;
      const shadow = before
        .get(first === undefined ? "" : formatServerKey(first))
        ?.find((other) => takesAllOf(other, block));
      for (const key of new Set(block.keys.map(formatServerKey))) {
        const others = before.get(key);
        if (others === undefined) before.set(key, [block]);
        else others.push(block);
      }
      const [view] = block.directives.filter(({ name }) => name.text === "view");
      if (shadow === undefined) continue;
      // Two blocks without a view cannot share a key; that is an error already.
      if (view === undefined && !hasView(shadow)) continue;
      const place = shadow.keys[0]?.span;
      const own = view?.name.span ?? block.keys[0]?.span;
      if (own === undefined || place === undefined) continue;
      report.warning(
        viewShadowed.code,
        own,
        `no query gets here: the server block at ${formatPlace(place)} gets them all first`,
        { expected: "server blocks with narrower views first, and the one that takes everything last" },
      );
    }
  },
};

/** Whether `other`, which comes earlier, takes every query that could reach `block`. */
function takesAllOf(other: LintBlock, block: LintBlock): boolean {
  if (!listensAlike(other, block)) return false;
  const covers = block.keys.every((key) =>
    other.keys.some(
      ({ zone, port, scheme }) => zone === key.zone && port === key.port && scheme === key.scheme,
    ),
  );
  if (!covers) return false;
  const conditions = conditionsOf(other);
  if (conditions.every((text) => constantOf(text) === true)) return true;
  const own = new Set(conditionsOf(block));
  // If its conditions include all conditions of the other block, every query that it accepts is taken there.
  return hasView(block) && conditions.every((text) => own.has(text));
}

function conditionsOf({ directives }: LintBlock): string[] {
  return directives
    .filter(({ name }) => name.text === "view")
    .flatMap((view) => optionLines(view, "expr"))
    .map(({ args }) => args.map((token) => token.text).join(" "));
}

function listensAlike({ settings: one }: LintBlock, { settings: other }: LintBlock): boolean {
  if (one.listensNowhere || other.listensNowhere) return false;
  return (
    other.listenHosts.length === one.listenHosts.length &&
    other.listenHosts.every((host) => one.listenHosts.includes(host))
  );
}
