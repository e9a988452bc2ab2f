import { globSync, readFileSync } from "node:fs";
import { basename, dirname, join, posix, relative, sep } from "node:path";
import { sections } from "./markdown.ts";

/** The page that says all differences from CoreDNS, relative to the project's folder. */
export const PAGE = join("docs", "compatibility.md");

const SECTION = "Differences from CoreDNS";

const PLACE = /(<!-- differences of (\S+) -->\n)[\s\S]*?(<!-- end of differences -->)/g;

/**
 * The page with what the READMEs say now, in the places marked `<!-- differences of GLOB -->`. Of several READMEs each gets a
 * heading; those whose section says "None" are left out.
 * @throws where a README has no such section
 */
export function currentPage(root: string): string {
  const page = readFileSync(join(root, PAGE), "utf8");
  return page.replace(PLACE, (_place, start: string, glob: string, end: string) => {
    const parts = globSync(glob, { cwd: root })
      .sort()
      .flatMap((readme) => {
        const text = differencesOf(readFileSync(join(root, readme), "utf8"), readme);
        if (text.startsWith("None")) return [];
        return glob.includes("*") ? `${heading(readme)}\n\n${text}` : text;
      });
    return `${start}\n${parts.join("\n\n")}\n\n${end}`;
  });
}

function differencesOf(readme: string, path: string): string {
  const section = sections(readme, 2).find(({ title }) => title === SECTION);
  if (section === undefined) throw new Error(`${path} has no section "${SECTION}"`);
  return section.text;
}

function heading(readme: string): string {
  const link = relative(dirname(PAGE), readme).split(sep).join(posix.sep);
  return `#### [${basename(dirname(readme))}](${link})`;
}
