/** Tests that a page names as proof: `[title](path/of/a.test.ts)`. */

export interface NamedTest {
  readonly title: string;
  /** As the page writes it, relative to its folder. */
  readonly file: string;
}

export function namedTests(page: string): NamedTest[] {
  return Array.from(page.matchAll(/\[([^\]]+)\]\(([^)\s]+\.test\.ts)\)/g), ([, title = "", file = ""]) => ({
    title,
    file,
  }));
}

/** Fewer letters outside of the placeholders of a template say nothing about a title. */
const TELLING = 8;

/**
 * Whether a test of the file has this title. The title is a literal in the text, alone or in a table of cases, or fits a template literal
 * such as `${program} takes a zone`.
 */
export function hasTest(text: string, title: string): boolean {
  if (text.includes(JSON.stringify(title))) return true;
  for (const [, template = ""] of text.matchAll(/\b(?:test|it|describe|suite)\(\s*`([^`]+)`/g)) {
    const parts = template.split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/);
    if (parts.join("").replace(/\W/g, "").length < TELLING && parts.length > 1) continue;
    if (new RegExp(`^${parts.map((part) => RegExp.escape(part)).join(".*")}$`).test(title)) return true;
  }
  return false;
}
