/** The names known at a place of an expression: variables of `let`, and `#`. */
import type { Type } from "../values/types.ts";
import type { ExpressionValue } from "../values/values.ts";

export interface LocalVariable {
  readonly name: string;
  readonly type: Type;
  /** Place of its value while the expression runs. */
  readonly slot: number;
  readonly constant: ExpressionValue | undefined;
}

/** The pointers of the innermost predicate. */
export interface PredicateFrame {
  readonly element: Type;
  readonly elementSlot: number;
  readonly indexSlot: number;
  /** Only for `reduce`. */
  readonly accumulatorSlot: number | undefined;
}

export class Scope {
  readonly #variables: LocalVariable[] = [];
  readonly #frames: PredicateFrame[] = [];
  #slots = 0;

  /** Number of values that the expression keeps while it runs. */
  get slots(): number {
    return this.#slots;
  }

  takeSlot(): number {
    return this.#slots++;
  }

  find(name: string): LocalVariable | undefined {
    return this.#variables.findLast((variable) => variable.name === name);
  }

  get frame(): PredicateFrame | undefined {
    return this.#frames.at(-1);
  }

  /** Runs `inside` with one more variable. */
  withVariable<T>(variable: LocalVariable, inside: () => T): T {
    this.#variables.push(variable);
    try {
      return inside();
    } finally {
      this.#variables.pop();
    }
  }

  withFrame<T>(frame: PredicateFrame, inside: () => T): T {
    this.#frames.push(frame);
    try {
      return inside();
    } finally {
      this.#frames.pop();
    }
  }
}
