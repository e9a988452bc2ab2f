/** Helpers to define the functions of the language. */

import type { Run } from "../evaluation/run.ts";
import { Misuse, RunFault } from "../values/language-error.ts";
import { type Type, typeText } from "../values/types.ts";
import { type ExpressionValue, isList, kindOf } from "../values/values.ts";

export type AnyRun = Run<unknown>;

export interface BuiltinFunction {
  /** Minimum and maximum number of arguments. */
  readonly least: number;
  readonly most: number;
  /** @returns the type of the result */
  check(args: readonly Type[]): Type | Misuse;
  /** @throws RunFault */
  call(args: readonly ExpressionValue[], run: AnyRun): ExpressionValue;
}

/** A function whose parameters have one type each; the last of them are optional, down to `least`. */
export function plainFunction(
  name: string,
  parameters: readonly Type[],
  result: Type,
  call: (args: readonly ExpressionValue[], run: AnyRun) => ExpressionValue,
  least: number = parameters.length,
): BuiltinFunction {
  return {
    least,
    most: parameters.length,
    check(args) {
      for (const [at, arg] of args.entries()) {
        const wanted = parameters[at];
        if (wanted === undefined || fits(arg, wanted)) continue;
        return new Misuse(
          `cannot use ${typeText(arg)} as argument (type ${typeText(wanted)}) to call ${name}`,
        );
      }
      return result;
    },
    call,
  };
}

/** A function of one argument with its own check. */
export function oneOf(
  accepts: (type: Type) => boolean,
  problem: (type: string) => string,
  result: (type: Type) => Type,
  call: (value: ExpressionValue, run: AnyRun) => ExpressionValue,
): BuiltinFunction {
  return {
    least: 1,
    most: 1,
    check([arg]) {
      if (arg === undefined) return new Misuse("an argument is missing");
      if (arg.kind !== "unknown" && !accepts(arg)) return new Misuse(problem(typeText(arg)));
      return result(arg);
    },
    call: ([value = null], run) => call(value, run),
  };
}

export function fits(type: Type, wanted: Type): boolean {
  return wanted.kind === "unknown" || type.kind === "unknown" || type.kind === wanted.kind;
}

export function textArgument(value: ExpressionValue | undefined): string {
  if (typeof value === "string") return value;
  throw new RunFault(`a string is needed, not ${kindOf(value ?? null)}`);
}

export function listArgument(value: ExpressionValue | undefined, what: string): readonly ExpressionValue[] {
  if (value !== undefined && isList(value)) return value;
  throw new RunFault(`${what} ${kindOf(value ?? null)}`);
}

/** A whole number used as a count. */
export function countArgument(value: ExpressionValue | undefined): number {
  if (typeof value === "number") return value;
  if (typeof value === "bigint") return value > 0n ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER;
  throw new RunFault(`a whole number is needed, not ${kindOf(value ?? null)}`);
}
