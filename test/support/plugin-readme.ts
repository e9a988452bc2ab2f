/** The required sections of a plugin's README and their order, the same for all. */
import { fencedBlocks, sections } from "../../scripts/lib/markdown.ts";

const SECTIONS = [
  "Description",
  "Syntax",
  "Examples",
  "Metrics",
  "Ready",
  "Metadata",
  "Bad input",
  "Differences from CoreDNS",
] as const;

/** Of plugins that report readiness, or give metadata. */
const OPTIONAL: readonly string[] = ["Ready", "Metadata"];

/** @returns what is wrong, in words */
export function readmeProblems(plugin: string, readme: string): string[] {
  const problems: string[] = [];
  if (!new RegExp(`^# ${plugin}\n\n[A-Z][^\n]+\\.\n\n## `).test(readme))
    problems.push(`does not begin with "# ${plugin}" and one sentence in one line`);
  const found = sections(readme, 2);
  const titles = found.map(({ title }) => title);
  const expected = SECTIONS.filter((title) => !OPTIONAL.includes(title) || titles.includes(title));
  if (titles.join() !== expected.join())
    problems.push(`has the sections ${titles.join(", ")}; expected ${expected.join(", ")}`);
  for (const { title, text } of found) {
    const languages = fencedBlocks(text).map(({ language }) => language);
    if (text === "") problems.push(`says nothing under "${title}"`);
    if (title === "Syntax" && languages[0] !== "txt")
      problems.push('has no block tagged "txt" under "Syntax"');
    if (title === "Examples" && !languages.includes("corefile"))
      problems.push('has no block tagged "corefile" under "Examples"');
  }
  return problems;
}
