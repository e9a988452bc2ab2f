/** A part of an expression after checking: its type and its evaluation. */

import type { Node } from "../syntax/syntax.ts";
import { type Extent, LanguageError, Misuse, RunFault } from "../values/language-error.ts";
import { type Type, typeOf } from "../values/types.ts";
import type { ExpressionValue } from "../values/values.ts";
import { type Evaluate, type Run, SETUP_BUDGET } from "./run.ts";

export interface Part<F> {
  readonly node: Node;
  readonly type: Type;
  readonly run: Evaluate<F>;
  /** The value, if it is the same for all facts. */
  readonly constant: ExpressionValue | undefined;
  /** Whether it reads a value of a surrounding part, so that it has no meaning alone. */
  readonly isLocal?: boolean;
  /** Its parts, for explanations. */
  readonly children: readonly Part<F>[];
}

export function constantPart<F>(node: Node, value: ExpressionValue, type: Type = typeOf(value)): Part<F> {
  return { node, type, run: () => value, constant: value, children: [] };
}

/**
 * A part that depends only on its children: if these are constant, so is it. An error in evaluating the constant is raised again
 * when it is run, because it may never be reached.
 */
export function foldedPart<F>(
  node: Node,
  type: Type,
  children: readonly Part<F>[],
  run: Evaluate<F>,
  setup: Run<F>,
): Part<F> {
  const guarded = withPlace(node, run);
  if (children.every(({ constant }) => constant !== undefined)) {
    try {
      setup.start(setup.facts, SETUP_BUDGET);
      return constantPart(node, guarded(setup), type);
    } catch (error) {
      if (!(error instanceof LanguageError)) throw error;
    }
  }
  return { node, type, run: guarded, constant: undefined, children };
}

/** Adds the place in the text to faults. */
export function withPlace<F>(extent: Extent, run: Evaluate<F>): Evaluate<F> {
  return (state) => {
    try {
      return run(state);
    } catch (error) {
      if (error instanceof RunFault) throw new LanguageError("run", error.message, extent);
      // A string, array or stack beyond the limits of the engine.
      if (error instanceof RangeError)
        throw new LanguageError("run", `out of bounds: ${error.message}`, extent);
      throw error;
    }
  };
}

/** @throws LanguageError for a failed check */
export function accepted<T>(checked: T | Misuse, extent: Extent): T {
  if (checked instanceof Misuse) throw new LanguageError("compile", checked.message, extent);
  return checked;
}
