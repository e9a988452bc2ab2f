/** Directives and options that CoreDNS has removed, with a note on what replaced each. */
import type { Corefile, Directive } from "../corefile/tree.ts";
import { nearestWord } from "../lib/text/nearest-word.ts";
import { externalPlugins } from "./external-plugins.ts";
import type { NearWord } from "./near-word.ts";
import { placeOf } from "./unknown-words.ts";

const KUBERNETES_TRANSFER = "zone transfers now have their own directive: 'transfer' in the server block";
const UPSTREAM = "'upstream' was removed: external names are always resolved through this server";

/** Replacements by directive. */
export const removedDirectives: ReadonlyMap<string, string> = new Map([
  ["upstream", UPSTREAM],
  ["reverse", "'reverse' was removed: use 'template', which builds answers from patterns"],
]);

/** By directive and option. */
export const removedOptions: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map([
  [
    "kubernetes",
    new Map([
      ["transfer", KUBERNETES_TRANSFER],
      ["federation", "'federation' was removed with the cluster federation that it served"],
      [
        "cidrs",
        "'cidrs' was removed: name the network among the zones, as in: kubernetes cluster.local 10.96.0.0/12",
      ],
    ]),
  ],
  ["file", new Map([["transfer", KUBERNETES_TRANSFER]])],
  ["auto", new Map([["transfer", KUBERNETES_TRANSFER]])],
  [
    "forward",
    new Map([["protocol", "'protocol' was an option of 'proxy': use 'force_tcp' or 'prefer_udp'"]]),
  ],
]);

/** The notes on removed words, by place. */
export function replacementNotes({ blocks }: Corefile): Map<string, string> {
  const notes = new Map<string, string>();
  for (const { directives } of blocks) {
    for (const directive of directives) {
      note(directive, removedDirectives, notes);
      note(directive, externalPlugins, notes);
      const options = removedOptions.get(directive.name.text);
      if (options !== undefined) for (const line of directive.block ?? []) note(line, options, notes);
    }
  }
  return notes;
}

function note({ name }: Directive, words: ReadonlyMap<string, string>, notes: Map<string, string>): void {
  const replacement = words.get(name.text);
  if (replacement !== undefined) notes.set(placeOf(name.span), replacement);
}

/** Words that resemble removed or external ones, by place. */
export function nearReplacements({ blocks }: Corefile): Map<string, NearWord> {
  const directivesToo = new Map([...removedDirectives, ...externalPlugins]);
  const near = new Map<string, NearWord>();
  for (const { directives } of blocks) {
    for (const directive of directives) {
      findNear(directive, directivesToo, near);
      const options = new Map([...(removedOptions.get(directive.name.text) ?? []), ["upstream", UPSTREAM]]);
      for (const line of directive.block ?? []) findNear(line, options, near);
    }
  }
  return near;
}

function findNear(
  { name }: Directive,
  words: ReadonlyMap<string, string>,
  near: Map<string, NearWord>,
): void {
  const word = nearestWord(name.text, words.keys());
  const replacement = word === undefined ? undefined : words.get(word);
  if (word !== undefined && replacement !== undefined)
    near.set(placeOf(name.span), { word, note: replacement });
}
