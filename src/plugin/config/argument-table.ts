/** The arguments of a line, by name and in order. */
import type { Argument } from "./arguments.ts";

export type ArgumentTable = Readonly<Record<string, Argument<unknown>>>;

/** A conditional type, so that declarations of other projects show the result and need not import this type. */
export type ArgumentsOf<A extends ArgumentTable> = A extends ArgumentTable
  ? { readonly [K in keyof A]: A[K] extends Argument<infer T> ? T : never }
  : never;

export function usageOf(args: ArgumentTable): string {
  return Object.entries(args)
    .map(([name, argument]) => argument.usage(name.toUpperCase()))
    .filter((usage) => usage !== "")
    .join(" ");
}

/** The valid words of each argument; an empty list where they cannot be listed. */
export function wordsOf(args: ArgumentTable): (readonly string[])[] {
  return Object.values(args).map(({ words = [] }) => words);
}
