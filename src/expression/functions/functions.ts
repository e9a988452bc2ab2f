/** The functions of the language itself, except those with a predicate. */

import type { BuiltinFunction } from "./function-kit.ts";
import { LIST_FUNCTIONS } from "./functions-lists.ts";
import { NUMBER_FUNCTIONS } from "./functions-numbers.ts";
import { TEXT_FUNCTIONS } from "./functions-text.ts";

export const FUNCTIONS: ReadonlyMap<string, BuiltinFunction> = new Map(
  Object.entries({ ...TEXT_FUNCTIONS, ...NUMBER_FUNCTIONS, ...LIST_FUNCTIONS }),
);

/** Functions of expr-lang that are not available, each with a message. */
export const LEFT_OUT: ReadonlyMap<string, string> = new Map(
  ["now", "date", "duration", "timezone"].map((name) => [
    name,
    `${name}() is not available: expressions have no dates and durations`,
  ]),
);
