/** Differences on purpose: each has a reason, and each reason stands in `docs/compatibility.md`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../portolan.ts";

/** Reasons that the page does not have. */
export function unsaidReasons(reasons: Iterable<string>): string[] {
  const page = normal(readFileSync(join(projectRoot, "docs", "compatibility.md"), "utf8"));
  return [...new Set(reasons)].filter((reason) => !page.includes(normal(reason)));
}

/** Lines may be broken elsewhere. */
function normal(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
