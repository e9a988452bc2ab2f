/** Turns the tree of an older CoreDNS's Corefile into an equivalent current one. */
import type { Corefile, Directive, ServerBlock } from "../tree.ts";
import { directiveOf } from "./line.ts";
import type { OldWord } from "./old-words.ts";

/** Returns the tree with these words replaced. In messages, new words have the place of the old ones. */
export function modernise(corefile: Corefile, words: readonly OldWord[]): Corefile {
  if (words.length === 0) return corefile;
  const byOld = new Map(words.map((word) => [word.old, word]));
  return { ...corefile, blocks: corefile.blocks.map((block) => moderniseBlock(block, byOld)) };
}

function moderniseBlock(block: ServerBlock, words: ReadonlyMap<Directive, OldWord>): ServerBlock {
  const directives = block.directives.flatMap((directive) => {
    const lines = (directive.block ?? []).flatMap((line) => replacement(line, words));
    const beside = (directive.block ?? []).flatMap((line) => {
      const word = words.get(line);
      return word?.beside.map((each) => directiveOf(each, line.name)) ?? [];
    });
    const kept = directive.block === undefined ? directive : { ...directive, block: lines };
    return [...(words.has(directive) ? replacement(directive, words) : [kept]), ...beside];
  });
  return { ...block, directives };
}

function replacement(directive: Directive, words: ReadonlyMap<Directive, OldWord>): Directive[] {
  const word = words.get(directive);
  return word === undefined ? [directive] : word.lines.map((line) => directiveOf(line, directive.name));
}
