/** What a rule of `lint` is: a pure look at server blocks that finds what runs, but is hardly meant. */
import type { DiagnosticSink } from "../corefile/diagnostic.ts";
import type { Directive } from "../corefile/tree.ts";
import type { Machine } from "../plugin/contract/site.ts";
import type { BackEnd } from "./back-ends.ts";
import type { LintBlock } from "./lint-block.ts";
import type { Listeners } from "./listeners.ts";

export interface LintRule {
  /** Of its warnings, with the prefix `LINT_`; never given another meaning. */
  readonly code: string;
  /** What it finds, in a few words for lists. */
  readonly about: string;
  check(input: LintInput, report: DiagnosticSink): void;
}

export interface LintInput {
  /** As they are written, faulty ones too. */
  readonly globalOptions: readonly Directive[];
  readonly blocks: readonly LintBlock[];
  /** The back ends of a block, in the order in which queries reach them. */
  backEnds(block: LintBlock): readonly BackEnd[];
  readonly listeners: Listeners;
  readonly machine: Pick<Machine, "addresses">;
}
