/** Which names a directive answers for, by its words: lint knows from it which plugins are never reached. */
import { normaliseZone } from "../../corefile/server-key.ts";
import type { Token } from "../../corefile/tokens.ts";
import type { Directive } from "../../corefile/tree.ts";
import { Name } from "../../dns/name.ts";

/** Of a plugin that answers all queries for these zones, but for those that it passes on. */
export interface ZoneClaims {
  /** The words that name the zones; empty where they are those of the server block. */
  readonly zones: readonly Token[];
  /** Lint may advise to write `fallthrough`. Lines `fallthrough [ZONES...]` that are there count in any case. */
  readonly hasFallthrough?: boolean;
  /** Names at or below these may go on to the next plugin as well. */
  readonly passesOn?: readonly Name[];
  /** They go on to a plugin of this name alone. */
  readonly passesOnlyTo?: string;
}

/** The lines of an option in the block of a directive. */
export function optionLines(directive: Directive, name: string): Directive[] {
  return (directive.block ?? []).filter((line) => line.name.text === name);
}

/** The zones that a word names: several for an address block. */
export function zonesOfWord({ text }: Token): Name[] {
  return normaliseZone(text).map((zone) => Name.parse(zone));
}
