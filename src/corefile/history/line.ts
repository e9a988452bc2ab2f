/** Lines to be written into a Corefile, as words: they become part of a tree, or text. */
import type { Token } from "../tokens.ts";
import type { Directive } from "../tree.ts";

/** An existing word of the Corefile, or a new one. */
export type Word = Token | string;

export interface CorefileLine {
  readonly words: readonly Word[];
  /** The lines between the braces; `undefined` for no braces. */
  readonly block?: readonly CorefileLine[];
}

/** @param words of the line; a `block` without lines means no block */
export function line(words: readonly Word[], block: readonly CorefileLine[] = []): CorefileLine {
  return block.length === 0 ? { words } : { words, block };
}

/** The line as a directive whose new words have the place `place` in messages. */
export function directiveOf({ words, block }: CorefileLine, place: Token): Directive {
  const [name = place, ...args] = words.map(
    (word): Token =>
      typeof word === "string"
        ? { ...place, kind: "word", text: word, raw: word, quoted: false, startsLine: false }
        : word,
  );
  return {
    name: { ...name, startsLine: true },
    args,
    block: block?.map((inner) => directiveOf(inner, place)),
    closingBrace: block === undefined ? undefined : place,
  };
}

const INDENT = "    ";

/** The line as text, with its block indented one level further. No line break at the end. */
export function textOf({ words, block }: CorefileLine, indent = ""): string {
  const text = indent + words.map(wordText).join(" ");
  if (block === undefined) return text;
  return [`${text} {`, ...block.map((inner) => textOf(inner, indent + INDENT)), `${indent}}`].join("\n");
}

function wordText(word: Word): string {
  const text = typeof word === "string" ? word : word.raw;
  const needsQuotes = text === "" || /[\s"{}#]/.test(text.replaceAll(/\{[$%][^{}]*\}|\{\$[^{}]*\}/g, ""));
  if (!needsQuotes && !(typeof word !== "string" && word.quoted)) return text;
  return `"${text.replaceAll('"', '\\"')}"`;
}
