/** The README of a built-in plugin, in parts. */
import { readFileSync } from "node:fs";
import { programFile } from "../../lib/files/program-files.ts";

/** The summary and the syntax of a plugin, as Markdown; `undefined` if it has no page. */
export function pluginHelp(module: string): string | undefined {
  const page = readPage(module);
  if (page === undefined) return undefined;
  const [, title = "", summary = ""] = /^# (.*)\n+([\s\S]*?)\n\n/.exec(page) ?? [];
  return `**${title}**: ${summary}\n\n${sectionOf(page, "Syntax") ?? ""}`.trimEnd();
}

/** What the page says about an option, as Markdown; `undefined` if it says nothing. */
export function optionHelp(module: string, option: string): string | undefined {
  const syntax = sectionOf(readPage(module) ?? "", "Syntax");
  if (syntax === undefined) return undefined;
  const lines = syntax
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line === option || line.startsWith(`${option} `));
  const items = syntax.split(/\n(?=- )/).filter((item) => item.startsWith("- "));
  const mentions = new RegExp(`\`${escaped(option)}[\` ]`);
  const item =
    items.find((each) =>
      mentions.test(/^- .*?(?= (is|are|takes|sets|may|means)\b|\n|$)/.exec(each)?.[0] ?? ""),
    ) ?? items.find((each) => mentions.test(each));
  const about = item
    ?.slice(2)
    .split("\n\n")[0]
    ?.replaceAll(/\n {2}/g, "\n");
  const parts = [lines.length === 0 ? undefined : `\`\`\`corefile\n${lines.join("\n")}\n\`\`\``, about];
  const known = parts.filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.join("\n\n");
}

function readPage(module: string): string | undefined {
  try {
    return readFileSync(programFile(`plugins/${module}/README.md`), "utf8");
  } catch {
    return undefined;
  }
}

function sectionOf(page: string, heading: string): string | undefined {
  return new RegExp(`^## ${heading}\n+([\\s\\S]*?)(?=\n## |$(?![\\s\\S]))`, "m").exec(page)?.[1]?.trim();
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
