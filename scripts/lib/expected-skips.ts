import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The list of the reasons for which a test may be skipped on a machine where every tool can be installed, relative to the project's folder. */
export const EXPECTED_SKIPS = "test/expected-skips.json";

/** One entry of the list. */
interface ExpectedSkip {
  /** A regular expression for the whole reason that the test gives. */
  readonly reason: string;
  /** Why the test cannot run on such a machine. */
  readonly why: string;
}

/** @returns patterns for reasons; none where the project has no list */
export function readExpectedSkips(root: string): RegExp[] {
  const file = join(root, EXPECTED_SKIPS);
  if (!existsSync(file)) return [];
  const list: ExpectedSkip[] = JSON.parse(readFileSync(file, "utf8"));
  return list.map(({ reason }) => new RegExp(`^(?:${reason})$`));
}
