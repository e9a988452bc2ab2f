/** The expression language of `view` and `template`: compiled once at setup, run for each query. */
import { Compiler } from "./compiling/compiler.ts";
import type { Environment } from "./evaluation/environment.ts";
import type { Part } from "./evaluation/part.ts";
import { RUN_BUDGET, Run } from "./evaluation/run.ts";
import { type ExplainedPart, explainParts } from "./functions/reasons.ts";
import { parseExpression } from "./syntax/parser.ts";
import type { Type } from "./values/types.ts";
import type { ExpressionValue } from "./values/values.ts";

/**
 * An expression over facts of type F. An evaluation makes no objects unless the expression needs some (arrays, texts, floats), and
 * its work is limited whatever the text.
 */
export class Expression<F> {
  readonly text: string;
  readonly #root: Part<F>;
  readonly #run: Run<F>;

  constructor(text: string, root: Part<F>, slots: number) {
    this.text = text;
    this.#root = root;
    this.#run = new Run<F>(undefined as F, slots);
  }

  get type(): Type {
    return this.#root.type;
  }

  /** The value, if it is the same for all facts. */
  get constant(): ExpressionValue | undefined {
    return this.#root.constant;
  }

  /** @throws LanguageError of stage `run` */
  evaluate(facts: F): ExpressionValue {
    this.#run.start(facts, RUN_BUDGET);
    try {
      return this.#root.run(this.#run);
    } finally {
      this.#run.end();
    }
  }

  /** The deciding parts, each with its value: the reason for the result. */
  explain(facts: F): readonly ExplainedPart[] {
    return explainParts(this.text, this.#root, (part) => {
      this.#run.start(facts, RUN_BUDGET);
      try {
        return part.run(this.#run);
      } finally {
        this.#run.end();
      }
    });
  }
}

/** @throws LanguageError with the place in `text` */
export function compileExpression<F>(text: string, environment: Environment<F>): Expression<F> {
  const compiler = new Compiler(environment);
  const root = compiler.compile(parseExpression(text));
  return new Expression(text, root, compiler.scope.slots);
}
