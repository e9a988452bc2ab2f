/** The arguments of a line, by name and in order. */
import type { Argument } from "./arguments.ts";

export type ArgumentTable = Readonly<Record<string, Argument<unknown>>>;

export type ArgumentsOf<A extends ArgumentTable> = {
  readonly [K in keyof A]: A[K] extends Argument<infer T> ? T : never;
};

export function usageOf(args: ArgumentTable): string {
  return Object.entries(args)
    .map(([name, argument]) => argument.usage(name.toUpperCase()))
    .filter((usage) => usage !== "")
    .join(" ");
}
