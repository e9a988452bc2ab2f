/** What an expression can ask about: functions over facts, such as those of a query, and variables. */
import type { Type } from "../values/types.ts";
import type { ExpressionValue } from "../values/values.ts";

export interface Environment<F> {
  readonly functions: ReadonlyMap<string, EnvironmentFunction<F>>;
  readonly variables?: ReadonlyMap<string, EnvironmentVariable<F>>;
}

export interface EnvironmentFunction<F> {
  /** Two at the most. */
  readonly parameters: readonly Type[];
  readonly result: Type;
  /**
   * Arguments are of the types of the parameters; the empty value of the type stands in for nil.
   * @throws RunFault
   */
  call(facts: F, first: ExpressionValue, second: ExpressionValue): ExpressionValue;
  /**
   * A cheaper way for arguments of which something is known beforehand.
   * @returns `undefined` where there is none
   */
  prepare?(args: readonly KnownArgument[]): ((facts: F) => ExpressionValue) | undefined;
}

/** What is known of an argument at set-up: its value, or the function of the environment that gives it. */
export interface KnownArgument {
  readonly constant?: ExpressionValue;
  readonly call?: string;
}

export interface EnvironmentVariable<F> {
  readonly type: Type;
  get(facts: F): ExpressionValue;
}
