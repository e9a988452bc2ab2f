/** The compiler as seen by the modules that compile one kind of node. */

import type { Node } from "../syntax/syntax.ts";
import type { Extent } from "../values/language-error.ts";
import type { Type } from "../values/types.ts";
import type { Environment } from "./environment.ts";
import type { Part } from "./part.ts";
import type { Run } from "./run.ts";
import type { Scope } from "./scope.ts";

export interface PartCompiler<F> {
  readonly environment: Environment<F>;
  readonly scope: Scope;
  readonly setup: Run<F>;
  /** @throws LanguageError */
  compile(node: Node): Part<F>;
  fail(message: string, extent: Extent, suggestion?: string): never;
  /** A part that is constant if its children are. */
  folded(node: Node, type: Type, children: readonly Part<F>[], run: Part<F>["run"]): Part<F>;
  /** A part that is never constant. */
  live(node: Node, type: Type, children: readonly Part<F>[], run: Part<F>["run"]): Part<F>;
  unknownName(name: string, extent: Extent): never;
  /** A name of the environment. */
  outerName(node: Node, name: string): Part<F>;
}
