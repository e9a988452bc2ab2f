/** The output formats of `check`, for people and for programs. */
import type { CheckedFile } from "./checked-file.ts";

/** @returns everything to print, line ends included */
export type CheckFormat = (files: readonly CheckedFile[], colour: boolean) => string;

/** Loaded when asked for. */
export const FORMATS: ReadonlyMap<string, () => Promise<CheckFormat>> = new Map<
  string,
  () => Promise<CheckFormat>
>([
  ["human", async () => (await import("./human.ts")).formatForPeople],
  ["json", async () => (await import("./json.ts")).formatAsJson],
  ["sarif", async () => (await import("./sarif.ts")).formatAsSarif],
  ["github", async () => (await import("./github.ts")).formatForGitHub],
]);
