/** Where the cursor is in a Corefile, whether the text is complete or not. */
import { snippetName } from "../../corefile/importer.ts";
import { lex, type SourceToken } from "../../corefile/tokens.ts";

export interface CursorPlace {
  /** The words of the statement before the cursor; the word at the cursor is not among them. */
  readonly before: readonly SourceToken[];
  /** The word at the cursor: it begins before the cursor and ends at it or behind it. */
  readonly word: SourceToken | undefined;
  /** The headings of the blocks around the cursor, outermost first: keys, then a directive, then options. */
  readonly blocks: readonly (readonly SourceToken[])[];
}

/** @returns `undefined` within a comment */
export function cursorPlace(text: string, offset: number): CursorPlace | undefined {
  const { tokens, comments } = lex(text, "");
  const isInComment = comments.some(
    ({ start, text: comment }) => start < offset && offset <= start + comment.length,
  );
  if (isInComment) return undefined;
  const blocks: (readonly SourceToken[])[] = [];
  let statement: SourceToken[] = [];
  let word: SourceToken | undefined;
  for (const token of tokens) {
    if (token.start >= offset) break;
    if (token.startsLine && !statement.at(-1)?.text.endsWith(",")) statement = [];
    if (token.kind === "opening-brace") {
      blocks.push(statement);
      statement = [];
    } else if (token.kind === "closing-brace") {
      blocks.pop();
      statement = [];
    } else if (token.end >= offset) word = token;
    else statement.push(token);
  }
  // Only white space is between the last word and the cursor: a line feed in it ends the statement.
  const last = statement.at(-1);
  if (word === undefined && last !== undefined && text.slice(last.end, offset).includes("\n")) {
    if (!(blocks.length === 0 && last.text.endsWith(","))) statement = [];
  }
  return { before: statement, word, blocks };
}

/** The role of the words at a place. */
export type Role =
  | { readonly kind: "top" }
  | { readonly kind: "global" }
  | { readonly kind: "directive" }
  | { readonly kind: "option"; readonly directive: string };

export function roleOf({ blocks }: CursorPlace): Role {
  const [keys, directive] = blocks;
  if (keys === undefined) return { kind: "top" };
  if (keys.length === 0) return { kind: "global" };
  const [name] = directive ?? [];
  if (name !== undefined) return { kind: "option", directive: name.text };
  return { kind: "directive" };
}

export interface Snippet {
  readonly name: string;
  readonly heading: SourceToken;
  /** The text from the heading to the closing brace. */
  readonly text: string;
}

/** The snippets that a text declares. */
export function snippetsOf(text: string, file: string): Snippet[] {
  const { tokens } = lex(text, file);
  return tokens.flatMap((heading, index) => {
    const name = heading.startsLine ? snippetName(heading.text) : undefined;
    if (name === undefined || tokens[index + 1]?.kind !== "opening-brace") return [];
    let depth = 0;
    for (const token of tokens.slice(index + 1)) {
      if (token.kind === "opening-brace") depth++;
      else if (token.kind === "closing-brace") depth--;
      if (depth === 0) return [{ name, heading, text: text.slice(heading.start, token.end) }];
    }
    return [{ name, heading, text: text.slice(heading.start) }];
  });
}
