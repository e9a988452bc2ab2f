/**
 * A large List of Kubernetes in YAML -> pieces that are parsed one after the other. `kubectl get -o yaml` prints one document however many objects there are,
 * and parsing takes more than a second for a megabyte, in which no query is answered.
 */

export interface CutList {
  /** The lines around the items, with `items:` as the last of them. */
  readonly frame: readonly string[];
  readonly pieces: readonly {
    /** Whole items. */
    readonly lines: readonly string[];
    /** The first of these lines in the text, from 0. */
    readonly at: number;
  }[];
}

/** Characters. What is shorter is not worth it. */
const LARGE = 32 * 1024;
/** Characters of what is around the items, which is parsed with each piece. */
const LARGEST_FRAME = 2 * 1024;
/** Characters of a piece, unless one item is longer: some 10 ms. */
const PIECE = 8 * 1024;

const KIND = /^kind: *["']?\w*List["']? *(?:#.*)?$/;
const ITEMS = /^items: *(?:#.*)?$/;
/** Blank, or a comment. */
const EMPTY = /^\s*(?:#.*)?$/;
/** What looks like an anchor, and like an alias of it: an item may be named in one of the others. */
const ANCHOR = /(?:^|[\s:,[{-])&[^\s,[\]{}]/;
const ALIAS = /(?:^|[\s:,[{-])\*[^\s,[\]{}]/;

/**
 * @param text one document, with line feeds alone
 * @returns undefined for what is no List in block style, as kubectl prints it, and for what is short
 */
export function cutList(text: string): CutList | undefined {
  if (text.length < LARGE || (ANCHOR.test(text) && ALIAS.test(text))) return undefined;
  const lines = text.split("\n");
  const head = lines.findIndex((line) => ITEMS.test(line));
  const first = lines.findIndex((line, at) => at > head && !EMPTY.test(line));
  const dash = /^( *)- /.exec(lines[first] ?? "")?.[1];
  if (head < 0 || dash === undefined) return undefined;
  const isItem = (line: string): boolean => line.startsWith(`${dash}- `) || line === `${dash}-`;
  /** Deeper than the dash of its item. */
  const isWithin = (line: string): boolean => line.startsWith(`${dash} `) || EMPTY.test(line);
  const end = lines.findIndex((line, at) => at > first && !isItem(line) && !isWithin(line));
  const behind = end < 0 ? [] : lines.slice(end);
  const frame = [...lines.slice(0, head), ...behind, "items:"];
  if (frame.join("\n").length > LARGEST_FRAME || !frame.some((line) => KIND.test(line))) return undefined;
  const pieces: { lines: string[]; at: number }[] = [];
  let length = PIECE;
  for (let at = first; at < (end < 0 ? lines.length : end); at++) {
    const line = lines[at] ?? "";
    if (length >= PIECE && isItem(line)) {
      pieces.push({ lines: [], at });
      length = 0;
    }
    pieces.at(-1)?.lines.push(line);
    length += line.length + 1;
  }
  return { frame, pieces };
}
