/** What comments and pages refer to: paths from the root of the project, links, and anchors. */
import { posix } from "node:path";
import type { Violation } from "./floors.ts";

/** What there is: the text of a file, an empty text for a folder, undefined for nothing. */
export type FileReader = (path: string) => string | undefined;

/** References to documents outside of the project, by a number that only these documents explain. */
const OUTSIDE = [
  /\b(?:CoreDNS|kube-dns)(?:'s)? facts\b/,
  /\(facts \d/,
  /\bkubernetes-dns-spec\b/,
  /\bkube-dns-family\b/,
  /[^-\w][Rr]ules? \d+\b/,
  /\bpart \d+\)/,
];

const PATH =
  /(?<![\w./@:*-])((?:docs|src|test|scripts|bench|deploy|examples)\/[\w./-]*\w)(?:#([\w-]+))?(?![\w*<{/-])/g;
const LINK = /\]\(([^)#\s:]*)(?:#([\w-]+))?\)/g;

/** Files that CONTRIBUTING.md has its reader make. */
const EXAMPLES = ["src/plugins/sinkhole", "examples/quickstart/lighthouse.ts"];

/** Comments of a source, or lines of a page outside of its fenced blocks. */
function* proseOf(path: string, text: string): Generator<[string, number]> {
  const isPage = path.endsWith(".md");
  let isFenced = false;
  for (const [index, line] of text.split("\n").entries()) {
    if (isPage && /^\s*(?:```|~~~)/.test(line)) isFenced = !isFenced;
    else if (isPage ? !isFenced : /^\s*(?:\*|#)|\/\/ |\/\*/.test(line)) yield [line, index + 1];
  }
}

/** The references of one file that lead nowhere. `path` is from the root of the project, as is what `read` takes. */
export function checkReferences(path: string, text: string, read: FileReader): Violation[] {
  const violations: Violation[] = [];
  for (const [line, number] of proseOf(path, text)) {
    const report = (message: string) => violations.push({ path, line: number, message });
    for (const pattern of OUTSIDE) {
      const [found] = pattern.exec(line) ?? [];
      if (found !== undefined) report(`refers to a document outside of the project: ${found.trim()}`);
    }
    for (const [, target = "", anchor] of line.matchAll(PATH)) check(target, anchor, report, read);
    if (!path.endsWith(".md")) continue;
    // Fragments of the changelog end up in a page at the root.
    const isFragment = path.startsWith("changes/") && path !== "changes/README.md";
    const folder = isFragment ? "." : posix.dirname(path);
    for (const [, target = "", anchor] of line.matchAll(LINK))
      check(target === "" ? path : posix.join(folder, target), anchor, report, read);
  }
  return violations;
}

/** Titles of tests stand alone: a number in them means nothing to their reader. */
export function checkTitles(path: string, text: string): Violation[] {
  return text.split("\n").flatMap((line, index) => {
    const [found] = /\b(?:it|test|describe)\(["'`].*(?:\brules? (?:\d|\$\{)|\bfacts \d)/.exec(line) ?? [];
    return found === undefined
      ? []
      : [{ path, line: index + 1, message: "the title of a test has a number" }];
  });
}

function check(
  target: string,
  anchor: string | undefined,
  report: (message: string) => void,
  read: FileReader,
) {
  if (EXAMPLES.some((example) => target.startsWith(example))) return;
  const page = read(target.replace(/\/$/, ""));
  if (page === undefined) report(`${target} does not exist`);
  else if (anchor !== undefined && target.endsWith(".md") && !anchorsOf(page).has(anchor))
    report(`${target} has no anchor ${anchor}`);
}

/** The anchors of a page: those written as such, and those of its headings as GitHub forms them. */
export function anchorsOf(page: string): Set<string> {
  const written = Array.from(page.matchAll(/<a id="([\w-]+)">/g), ([, anchor = ""]) => anchor);
  const anchors = new Set(written);
  for (const [, title = ""] of page.matchAll(/^#+ +(.+?)\s*$/gm)) {
    const slug = title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    let free = slug;
    for (let count = 1; anchors.has(free); count++) free = `${slug}-${count}`;
    anchors.add(free);
  }
  return anchors;
}
