/** A lint rule: a pure function over server blocks that reports valid but suspicious configuration. */
import type { DiagnosticSink } from "../corefile/diagnostic.ts";
import type { Directive } from "../corefile/tree.ts";
import type { Machine } from "../plugin/contract/site.ts";
import type { BackEnd } from "./back-ends.ts";
import type { LintBlock } from "./lint-block.ts";
import type { Listeners } from "./listeners.ts";

export interface LintRule {
  /** The code of its warnings, with the prefix `LINT_`; it never changes its meaning. */
  readonly code: string;
  /** What the rule finds, in a few words for lists. */
  readonly about: string;
  check(input: LintInput, report: DiagnosticSink): void;
}

export interface LintInput {
  /** As written, including invalid ones. */
  readonly globalOptions: readonly Directive[];
  readonly blocks: readonly LintBlock[];
  /** The back ends of a block, in the order in which queries reach them. */
  backEnds(block: LintBlock): readonly BackEnd[];
  readonly listeners: Listeners;
  readonly machine: Pick<Machine, "addresses">;
}
