/** The output formats of `check`, for people and for programs. */
import type { CheckedFile } from "./checked-file.ts";

/** @returns everything to print, line ends included */
export type Format = (files: readonly CheckedFile[], colour: boolean) => string;

/** Each format is loaded only when it is used. */
export const FORMATS: ReadonlyMap<string, () => Promise<Format>> = new Map<string, () => Promise<Format>>([
  ["human", async () => (await import("./human.ts")).formatForPeople],
  ["json", async () => (await import("./json.ts")).formatAsJson],
  ["sarif", async () => (await import("./sarif.ts")).formatAsSarif],
  ["github", async () => (await import("./github.ts")).formatForGitHub],
]);
