/** Links between files of the repository, as links between pages of the site. */
import { posix } from "node:path";

export interface LinkTargets {
  /** The page of a file or folder of the repository, or where the site offers it as text; undefined for neither. */
  find(path: string): string | undefined;
}

/** Link texts, then targets of `[text](target)`, `src="…"` and the like; code is left alone. */
const LINK =
  /(`+)[\s\S]*?\1|(?<!!)\[((?:[^[\]]|!\[[^\]]*\]\([^)]*\)|\[[^\]]*\])*)\]\(([^)\s]+)\)|!\[([^\]]*)\]\(([^)\s]+)\)|\b(src|srcset|href)="([^"]+)"/g;

/**
 * The text with links that fit the site. A link to what the site does not have becomes plain text.
 * @param source the file that the text is from
 */
export function rewriteLinks(text: string, source: string, targets: LinkTargets): string {
  const resolve = (link: string): string | undefined => {
    if (/^([a-z]+:|#)/.test(link)) return link;
    const [path = "", anchor] = link.split("#");
    const found = targets.find(posix.normalize(posix.join(posix.dirname(source), path)).replace(/\/$/, ""));
    if (found === undefined) return undefined;
    return anchor === undefined ? found : `${found}#${anchor}`;
  };
  const rewrite = (prose: string): string =>
    prose.replaceAll(LINK, (whole, ...groups: readonly (string | undefined)[]) => {
      const [, words, link, alternative, image, attribute, value] = groups;
      if (link !== undefined) {
        const target = resolve(link);
        const text = rewrite(words ?? "");
        return target === undefined ? text : `[${text}](${target})`;
      }
      if (image !== undefined) return `![${alternative}](${resolve(image) ?? image})`;
      if (attribute !== undefined && value !== undefined) return `${attribute}="${resolve(value) ?? value}"`;
      return whole;
    });
  return outsideOfFences(text, rewrite);
}

function outsideOfFences(text: string, change: (prose: string) => string): string {
  const parts: string[] = [];
  let prose: string[] = [];
  let fence: string | undefined;
  const flush = (): void => {
    if (prose.length > 0) parts.push(change(prose.join("\n")));
    prose = [];
  };
  for (const line of text.split("\n")) {
    const marks = /^ *(`{3,})/.exec(line)?.[1];
    if (fence === undefined && marks === undefined) {
      prose.push(line);
      continue;
    }
    flush();
    parts.push(line);
    if (fence === undefined) fence = marks;
    else if (line.trim() === fence) fence = undefined;
  }
  flush();
  return parts.join("\n");
}
