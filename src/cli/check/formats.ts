/** What `check` prints, for people and for programs. */
import type { CheckedFile } from "./checked-file.ts";
import { formatForGitHub } from "./github.ts";
import { formatForPeople } from "./human.ts";
import { formatAsJson } from "./json.ts";
import { formatAsSarif } from "./sarif.ts";

/** @returns everything to print, line ends included */
export type Format = (files: readonly CheckedFile[], colour: boolean) => string;

export const FORMATS: ReadonlyMap<string, Format> = new Map<string, Format>([
  ["human", formatForPeople],
  ["json", formatAsJson],
  ["sarif", formatAsSarif],
  ["github", formatForGitHub],
]);
