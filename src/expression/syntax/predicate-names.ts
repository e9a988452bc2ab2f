/** Functions whose second argument is evaluated for each element of an array, with `#` as the element. */
export const PREDICATE_FUNCTIONS: ReadonlySet<string> = new Set([
  "all",
  "any",
  "none",
  "one",
  "filter",
  "map",
  "count",
  "sum",
  "find",
  "findIndex",
  "findLast",
  "findLastIndex",
  "groupBy",
  "sortBy",
  "reduce",
]);
