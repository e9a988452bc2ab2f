import { formatPlace } from "../corefile/diagnostic.ts";
import type { Directive } from "../corefile/tree.ts";
import { placeOf } from "./unknown-words.ts";

/** A server block, with the known options of each of its directives. */
export interface BlockWithOptions {
  readonly directives: readonly Directive[];
  readonly plugins: readonly {
    readonly definition: {
      readonly name: string;
      readonly config: { readonly description: { readonly options: readonly { readonly name: string }[] } };
    };
  }[];
}

/** Notes on directives that are options of an earlier directive, by place. */
export function misplacedOptionNotes(blocks: readonly BlockWithOptions[]): Map<string, string> {
  const notes = new Map<string, string>();
  for (const { directives, plugins } of blocks) {
    const known = new Map(
      plugins.map(({ definition: { name, config } }) => [
        name,
        new Set(config.description.options.map((option) => option.name)),
      ]),
    );
    let before: Directive | undefined;
    for (const directive of directives) {
      if (known.has(directive.name.text)) before = directive;
      else if (before !== undefined && known.get(before.name.text)?.has(directive.name.text))
        notes.set(placeOf(directive.name.span), misplaced(directive, before));
    }
  }
  return notes;
}

function misplaced({ name }: Directive, { name: owner, block }: Directive): string {
  const where = block === undefined ? "in braces after it" : "in its block";
  return `'${name.text}' is an option of '${owner.text}' (${formatPlace(owner.span)}): it belongs ${where}`;
}
