/** The functions and variables available to an expression, over facts such as those of a query. */
import type { Type } from "../values/types.ts";
import type { ExpressionValue } from "../values/values.ts";

export interface Environment<F> {
  readonly functions: ReadonlyMap<string, EnvironmentFunction<F>>;
  readonly variables?: ReadonlyMap<string, EnvironmentVariable<F>>;
}

export interface EnvironmentFunction<F> {
  /** At most two. */
  readonly parameters: readonly Type[];
  readonly result: Type;
  /**
   * Arguments have the types of the parameters; nil becomes the empty value of the type.
   * @throws RunFault
   */
  call(facts: F, first: ExpressionValue, second: ExpressionValue): ExpressionValue;
  /**
   * Returns a cheaper variant for arguments that are partly known.
   * @returns `undefined` if it has no such variant
   */
  prepare?(args: readonly KnownArgument[]): ((facts: F) => ExpressionValue) | undefined;
}

/** Knowledge about an argument at setup: its value, or the function of the environment that returns it. */
export interface KnownArgument {
  readonly constant?: ExpressionValue;
  readonly call?: string;
}

export interface EnvironmentVariable<F> {
  readonly type: Type;
  get(facts: F): ExpressionValue;
}
