/** The plugins of a block that answer queries, with the names that each claims and passes on. */
import { formatPlace } from "../corefile/diagnostic.ts";
import type { Token } from "../corefile/tokens.ts";
import type { Directive } from "../corefile/tree.ts";
import { Name } from "../dns/name.ts";
import type { PluginDefinition } from "../plugin/contract/define-plugin.ts";
import { optionLines, type ZoneClaims, zonesOfWord } from "../plugin/contract/zone-claims.ts";
import type { LintBlock } from "./lint-block.ts";

export interface BackEnd {
  readonly name: string;
  readonly directive: Directive;
  /** Position in the block as written. */
  readonly written: number;
  /** As named in the directive, or the zones of the block if it names none. */
  readonly claims: readonly Claim[];
  /** The claims, restricted to the zones of the block. */
  readonly zones: readonly Name[];
  /** Names at or below these may go on to the next plugin. */
  readonly passesOn: readonly Name[];
  /** Set if queries only go on to a directive of this name. */
  readonly passesOnlyTo: string | undefined;
  /** Whether `fallthrough` would let names go on. */
  readonly hasFallthrough: boolean;
}

export interface Claim {
  readonly zone: Name;
  /** The word that names the zone. */
  readonly token: Token | undefined;
}

/** Rules compare all pairs of zones, so blocks with more zones are skipped. */
const MAX_ZONES = 512;

/** The known plugins. */
export interface KnownPlugins {
  /** Position in the chain, `Infinity` for an unknown plugin. */
  position(name: string): number;
  /** The definition, if the plugin is loaded. */
  loaded(name: string): Pick<PluginDefinition<unknown>, "claims"> | undefined;
}

/** In the order in which queries reach them. */
export function backEnds(block: LintBlock, plugins: KnownPlugins): BackEnd[] {
  if (block.zones.length > MAX_ZONES) return [];
  return block.directives
    .flatMap((directive, written) => {
      const own = plugins.loaded(directive.name.text)?.claims?.(directive);
      return own === undefined ? [] : [describe(directive, written, own, block)];
    })
    .sort(
      (one, other) =>
        plugins.position(one.name) - plugins.position(other.name) || one.written - other.written,
    );
}

/** Whether no query for names in `zone` passes `first` to reach `second`, which comes later. */
export function stops(first: BackEnd, second: BackEnd, zone: Name): boolean {
  if (!first.zones.some((taken) => zone.isAtOrBelow(taken))) return false;
  if (first.passesOnlyTo !== undefined && first.passesOnlyTo !== second.name) return true;
  return !first.passesOn.some((passed) => areRelated(passed, zone));
}

/** Whether some names are in both zones. */
export function areRelated(one: Name, other: Name): boolean {
  return one.isAtOrBelow(other) || other.isAtOrBelow(one);
}

/** `'forward' (Corefile:3:5)`. */
export function mention({ directive }: BackEnd): string {
  return `'${directive.name.text}' (${formatPlace(directive.name.span)})`;
}

function describe(directive: Directive, written: number, own: ZoneClaims, block: LintBlock): BackEnd {
  const named = own.zones.flatMap((token) => zonesOfWord(token).map((zone) => ({ zone, token })));
  const claims: Claim[] = named.length > 0 ? named : block.zones.map((zone) => ({ zone, token: undefined }));
  return {
    name: directive.name.text,
    directive,
    written,
    claims,
    zones: within(
      claims.map(({ zone }) => zone),
      block.zones,
    ),
    passesOn: [...(own.passesOn ?? []), ...fallenThrough(directive)],
    passesOnlyTo: own.passesOnlyTo,
    hasFallthrough: own.hasFallthrough ?? false,
  };
}

/** The parts of `claims` that lie in `zones`. */
function within(claims: readonly Name[], zones: readonly Name[]): Name[] {
  const parts = new Map<string, Name>();
  for (const claim of claims) {
    for (const zone of zones) {
      const part = claim.isAtOrBelow(zone) ? claim : zone.isAtOrBelow(claim) ? zone : undefined;
      if (part !== undefined) parts.set(part.toLowerCase().toString(), part);
    }
  }
  return [...parts.values()];
}

/** Zones of the lines `fallthrough [ZONES...]`. */
function fallenThrough(directive: Directive): Name[] {
  return optionLines(directive, "fallthrough").flatMap(({ args }) =>
    args.length === 0 ? [Name.root] : args.flatMap(zonesOfWord),
  );
}
