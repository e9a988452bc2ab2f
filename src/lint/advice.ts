/** Adds to the parser's errors: warnings, and hints that help with an error. */
import type { Diagnostic, DiagnosticSink } from "../corefile/diagnostic.ts";
import type { Corefile } from "../corefile/tree.ts";
import type { KnownPlugins } from "./back-ends.ts";
import { explainEnvironment } from "./environment-hints.ts";
import { lintChecks } from "./lint.ts";
import type { LintBlock } from "./lint-block.ts";
import { misplacedOptionNotes } from "./misplaced-options.ts";
import { nearReplacements, replacementNotes } from "./replacements.ts";
import type { LintInput } from "./rule.ts";
import { explainUnknownWords } from "./unknown-words.ts";

export interface AdvisedConfiguration {
  readonly corefile: Corefile;
  readonly blocks: readonly (LintBlock & Parameters<typeof misplacedOptionNotes>[0][number])[];
  /** The known plugins. */
  readonly registry: KnownPlugins;
  readonly machine: LintInput["machine"];
  /** Returns the text of a file. */
  readonly textOf: (file: string) => string | undefined;
}

/**
 * @param diagnostics those of the parser
 * @param report holds the other diagnostics, and receives the warnings
 * @param rest awaited between the rules
 * @returns all diagnostics
 */
export async function advise(
  { corefile, blocks, registry, machine, textOf }: AdvisedConfiguration,
  diagnostics: readonly Diagnostic[],
  report: DiagnosticSink,
  rest: () => Promise<void>,
): Promise<Diagnostic[]> {
  const subject = { globalOptions: corefile.globalOptions, blocks, plugins: registry, machine };
  for (const check of lintChecks(subject, report)) {
    check();
    await rest();
  }
  const explained = explainUnknownWords(
    [...diagnostics, ...report.diagnostics],
    nearReplacements(corefile),
    replacementNotes(corefile),
    misplacedOptionNotes(blocks),
  );
  return explainEnvironment(explained, textOf);
}
