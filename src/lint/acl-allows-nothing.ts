import { normaliseZone } from "../corefile/server-key.ts";
import type { Directive } from "../corefile/tree.ts";
import { Name } from "../dns/name.ts";
import type { LintBlock } from "./lint-block.ts";
import type { LintRule } from "./rule.ts";

/**
 * Finds access rules that let no query of the block through: often an `allow` is missing, or follows a rule that denies everything.
 */
export const aclAllowsNothing: LintRule = {
  code: "LINT_ACL_ALLOWS_NOTHING",
  about: "access rules let no query through",

  check(input, report) {
    for (const block of input.blocks) {
      const denial = denialOfEverything(block);
      if (denial === undefined) continue;
      report.warning(
        aclAllowsNothing.code,
        denial.name.span,
        `'${denial.name.text}' matches every query of this server block: nothing after it answers`,
        { expected: "an 'allow' line before it, or 'type' or 'net' on this line" },
      );
    }
  },
};

/** The first line that denies every query, if no `allow` precedes it. */
function denialOfEverything(block: LintBlock): Directive | undefined {
  for (const directive of block.directives) {
    if (directive.name.text !== "acl") continue;
    const isForAll = coversAll(directive, block);
    for (const line of directive.block ?? []) {
      const action = line.name.text.toLowerCase();
      if (action === "allow") return undefined;
      if (isForAll && ["block", "filter", "drop"].includes(action) && isUnconditional(line)) return line;
    }
  }
  return undefined;
}

function coversAll(directive: Directive, block: LintBlock): boolean {
  const zones = directive.args.flatMap(({ text }) => normaliseZone(text)).map((zone) => Name.parse(zone));
  if (directive.args.length === 0) return true;
  return block.zones.every((zone) => zones.some((covered) => zone.isAtOrBelow(covered)));
}

/** Whether each of its sections is `*`. */
function isUnconditional({ args }: Directive): boolean {
  const open = new Map<string, boolean>();
  let section = "";
  for (const { text } of args) {
    const word = text.toLowerCase();
    if (word === "type" || word === "net") {
      section = word;
      open.set(section, open.get(section) ?? false);
    } else if (word === "*") {
      open.set(section, true);
    }
  }
  return [...open.values()].every(Boolean);
}
