/** The plugins of a block that answer queries, with the names that each claims and passes on. */
import { formatPlace } from "../corefile/diagnostic.ts";
import { normaliseZone } from "../corefile/server-key.ts";
import type { Token } from "../corefile/tokens.ts";
import type { Directive } from "../corefile/tree.ts";
import { Name } from "../dns/name.ts";
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

/** In the order in which queries reach them. */
export function backEnds(block: LintBlock, subject: { position(name: string): number }): BackEnd[] {
  if (block.zones.length > MAX_ZONES) return [];
  return block.directives
    .flatMap((directive, written) => {
      const read = READERS.get(directive.name.text);
      if (read === undefined || subject.position(directive.name.text) === Number.POSITIVE_INFINITY) return [];
      const facts = read(directive);
      return facts === undefined ? [] : [describe(directive, written, facts, block)];
    })
    .sort(
      (one, other) =>
        subject.position(one.name) - subject.position(other.name) || one.written - other.written,
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

interface Facts {
  /** Empty if the directive names no zone. */
  readonly zoneTokens: readonly Token[];
  readonly passesOn?: readonly Name[];
  readonly passesOnlyTo?: string;
  readonly hasFallthrough?: boolean;
}

function describe(directive: Directive, written: number, facts: Facts, block: LintBlock): BackEnd {
  const named = facts.zoneTokens.flatMap((token) => zonesOf(token).map((zone) => ({ zone, token })));
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
    passesOn: facts.passesOn ?? [],
    passesOnlyTo: facts.passesOnlyTo,
    hasFallthrough: facts.hasFallthrough ?? false,
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

function zonesOf(token: Token): Name[] {
  return normaliseZone(token.text).map((zone) => Name.parse(zone));
}

/** Reads the facts about each kind of back end; `undefined` if they are uncertain. */
const READERS = new Map<string, (directive: Directive) => Facts | undefined>([
  ["whoami", () => ({ zoneTokens: [] })],
  ["erratic", () => ({ zoneTokens: [] })],
  ["forward", readForward],
  ["grpc", readGrpc],
  ["hosts", (directive) => readFallthrough(directive, directive.args.slice(1))],
  ["file", (directive) => readFallthrough(directive, directive.args.slice(1))],
  ["k8s_external", (directive) => readFallthrough(directive, directive.args)],
  ["istio", (directive) => readFallthrough(directive, directive.args)],
  ["kubernetes", (directive) => readFallthrough(directive, directive.args)],
  ["template", readTemplate],
]);

function readFallthrough(directive: Directive, zoneTokens: readonly Token[]): Facts {
  const lines = optionLines(directive, "fallthrough");
  const passesOn = lines.flatMap(({ args }) => (args.length === 0 ? [Name.root] : args.flatMap(zonesOf)));
  return { zoneTokens, passesOn, hasFallthrough: true };
}

function readForward(directive: Directive): Facts {
  const passesOn = optionLines(directive, "except").flatMap(({ args }) => args.flatMap(zonesOf));
  const zoneTokens = directive.args.slice(0, 1);
  if (["next", "next_on_nodata"].every((name) => optionLines(directive, name).length === 0))
    return { zoneTokens, passesOn };
  // Names below `except` go on to any plugin. Names unknown to the upstream only go on to a `forward`.
  return passesOn.length > 0
    ? { zoneTokens, passesOn: [Name.root] }
    : { zoneTokens, passesOn: [Name.root], passesOnlyTo: "forward" };
}

function readGrpc(directive: Directive): Facts {
  const excepted = optionLines(directive, "except").flatMap(({ args }) => args.flatMap(zonesOf));
  const { passesOn = [] } = readFallthrough(directive, []);
  return { zoneTokens: directive.args.slice(0, 1), passesOn: [...passesOn, ...excepted] };
}

/** Only a template for all names and types is certain to end the chain. */
function readTemplate(directive: Directive): Facts | undefined {
  const [, type, ...zoneTokens] = directive.args;
  if (type?.text.toUpperCase() !== "ANY" || optionLines(directive, "match").length > 0) return undefined;
  return readFallthrough(directive, zoneTokens);
}

export function optionLines(directive: Directive, name: string): Directive[] {
  return (directive.block ?? []).filter((line) => line.name.text === name);
}
