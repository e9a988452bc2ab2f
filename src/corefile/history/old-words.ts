/**
 * The words that older versions of CoreDNS accepted and the current one does not: since when, and their replacements
 * (docs/spec/kube-dns.md#old-corefiles). The server uses this table to start such a Corefile, and `migrate` to rewrite it.
 */
import type { Span } from "../diagnostic.ts";
import type { Token } from "../tokens.ts";
import type { Corefile, Directive, ServerBlock } from "../tree.ts";
import { type CorefileLine, line } from "./line.ts";
import { type ReadFileText, todaysProxy } from "./proxy-line.ts";

/** One old directive or option, and its replacement. */
export interface OldWord {
  readonly plugin: string;
  /** `undefined` for a whole directive. */
  readonly option: string | undefined;
  /** The versions that first warned about it, ignored it, and refused it. */
  readonly deprecated?: string;
  readonly ignored?: string;
  readonly removed?: string;
  readonly replacedBy?: string;
  readonly block: ServerBlock;
  /** The directive that contains it, or the directive itself. */
  readonly directive: Directive;
  /** The part to remove: {@link directive}, or a line of its block. */
  readonly old: Directive;
  /** The replacement; empty if nothing replaces it. */
  readonly lines: readonly CorefileLine[];
  /** Lines to add to the surrounding server block. */
  readonly beside: readonly CorefileLine[];
  /** The parts that cannot be converted. */
  readonly losses: readonly string[];
  /** The current form, as a sentence. */
  readonly advice: string;
}

/** Old directives that only this table has. */
export const OLD_DIRECTIVES: ReadonlySet<string> = new Set(["proxy", "startup", "shutdown"]);

/** Options that resolved CNAME targets through servers of their own: all of them were removed. */
const WITH_UPSTREAM: ReadonlySet<string> = new Set([
  "kubernetes",
  "file",
  "auto",
  "secondary",
  "etcd",
  "route53",
  "azure",
  "clouddns",
  "template",
  "federation",
]);

const WITH_TRANSFER: ReadonlySet<string> = new Set(["kubernetes", "file", "auto", "secondary"]);

/** All old words of a Corefile, in the order of the text. */
export function findOldWords({ blocks }: Corefile, readFile: ReadFileText): OldWord[] {
  return blocks.flatMap((block) => [
    ...proxies(block, readFile),
    ...block.directives.flatMap((directive) => [
      ...hooks(block, directive),
      ...(directive.block ?? []).flatMap((option) => oldOption(block, directive, option)),
    ]),
  ]);
}

/** The place of a word, for messages. */
export function spanOf({ old }: OldWord): Span {
  return old.name.span;
}

/** In `proxy` the longest FROM won, whatever the order. In `forward` the first match wins. */
function proxies(block: ServerBlock, readFile: ReadFileText): OldWord[] {
  const found = block.directives.filter(({ name }) => name.text === "proxy");
  const own = found.map((directive) => ({
    ...todaysProxy(directive, readFile),
    directive,
    labels: labelsOf(directive.args[0]?.text),
  }));
  const sorted = own.toSorted((one, other) => other.labels - one.labels);
  const overGrpc = own.filter(({ line: { words } }) => words[0] === "grpc").map(({ directive }) => directive);
  return own.map(({ directive, line: { words }, losses }, index) => {
    const name = typeof words[0] === "string" ? words[0] : "forward";
    const place = sorted[index];
    const exceptions = name === "forward" ? zonesBelow(directive, overGrpc) : [];
    const excepted = exceptions.map(({ text }) => text).join(" ");
    return {
      plugin: "proxy",
      option: undefined,
      deprecated: "1.4.0",
      removed: "1.5.0",
      replacedBy: name,
      block,
      directive,
      old: directive,
      lines:
        place === undefined
          ? []
          : [...leftByGrpc(place, overGrpc), withExceptions(place.line, place.directive, overGrpc)],
      beside: [],
      losses,
      advice: `write '${words.map((word) => (typeof word === "string" ? word : word.text)).join(" ")}'${excepted === "" ? "" : ` with 'except ${excepted}' in its block, because it runs before 'grpc'`}`,
    };
  });
}

/** `forward` runs before `grpc`, so it must exclude the longer zones of `grpc`. */
function withExceptions(
  own: CorefileLine,
  directive: Directive,
  overGrpc: readonly Directive[],
): CorefileLine {
  const exceptions = own.words[0] === "forward" ? zonesBelow(directive, overGrpc) : [];
  if (exceptions.length === 0) return own;
  return line(own.words, [...(own.block ?? []), line(["except", ...exceptions])]);
}

/** Names that `grpc` excludes belong to this `forward`, which leaves the zone around them to `grpc`. */
function leftByGrpc(
  {
    line: own,
    directive,
    labels,
  }: { readonly line: CorefileLine; readonly directive: Directive; readonly labels: number },
  overGrpc: readonly Directive[],
): CorefileLine[] {
  if (own.words[0] !== "forward") return [];
  const inside = zonesBelow(directive, overGrpc);
  const left = overGrpc
    .filter(({ args: [zone] }) => zone !== undefined && inside.includes(zone))
    .flatMap((each) => exceptionsOf(each))
    .filter((zone) => !overGrpc.some((each) => takes(each, zone)));
  return left
    .filter((zone) => labelsOf(zone.text) > labels)
    .map((zone) => line(["forward", zone, ...own.words.slice(2)], own.block));
}

function exceptionsOf({ block }: Directive): Token[] {
  return (block ?? []).flatMap(({ name, args }) => (name.text === "except" ? args : []));
}

function takes(proxy: Directive, zone: Token): boolean {
  return isWithin(zone, proxy.args[0]) && !exceptionsOf(proxy).some((each) => isWithin(zone, each));
}

function isWithin(zone: Token, outer: Token | undefined): boolean {
  const inner = zoneLabels(zone.text);
  return zoneLabels(outer?.text).every((label, index) => label === inner[index]);
}

/** The zones of other lines below the zone of this one. */
function zonesBelow({ args: [from] }: Directive, others: readonly Directive[]): Token[] {
  return others.flatMap(({ args: [zone] }) =>
    zone !== undefined && labelsOf(zone.text) > labelsOf(from?.text) && isWithin(zone, from) ? [zone] : [],
  );
}

function labelsOf(zone = "."): number {
  return zoneLabels(zone).length;
}

/** The last label first. */
function zoneLabels(zone = "."): string[] {
  return zone
    .toLowerCase()
    .split(".")
    .filter((label) => label !== "")
    .reverse();
}

function hooks(block: ServerBlock, directive: Directive): OldWord[] {
  const { name, args } = directive;
  if (name.text !== "startup" && name.text !== "shutdown") return [];
  return [
    {
      plugin: name.text,
      option: undefined,
      deprecated: "1.0.6",
      removed: "1.1.0",
      replacedBy: "on",
      block,
      directive,
      old: directive,
      lines: [line(["on", name.text, ...args])],
      beside: [],
      losses: [],
      advice: `write 'on ${name.text} ${args.map(({ text }) => text).join(" ")}'`,
    },
  ];
}

function oldOption(block: ServerBlock, directive: Directive, old: Directive): OldWord[] {
  const plugin = directive.name.text;
  const option = old.name.text;
  const word = { plugin, option, block, directive, old, lines: [], beside: [], losses: [] };
  if (option === "upstream" && WITH_UPSTREAM.has(plugin)) {
    const losses =
      old.args.length > 0
        ? [
            `targets of CNAME records are looked up through this server, and no longer through ${old.args.map(({ text }) => text).join(" ")}`,
          ]
        : [];
    const advice = "delete it, external names are always resolved through this server";
    return [{ ...word, deprecated: "1.4.0", ignored: "1.5.0", removed: "1.7.0", losses, advice }];
  }
  if (option === "resyncperiod" && plugin === "kubernetes") {
    const advice = "leave it out, changes of the cluster are watched";
    return [{ ...word, deprecated: "1.5.0", ignored: "1.6.0", removed: "1.7.0", advice }];
  }
  if (option === "no_reload" && (plugin === "file" || plugin === "auto"))
    return [
      {
        ...word,
        removed: "1.5.0",
        replacedBy: "reload",
        lines: [line(["reload", "0"])],
        advice: "write 'reload 0'",
      },
    ];
  if (option === "transfer" && WITH_TRANSFER.has(plugin) && old.args[0]?.text === "to") {
    const zones = transferredZones(block, directive);
    // One directive for all lines: of several directives for a zone only one counts.
    const all = (directive.block ?? []).filter(
      ({ name, args: [to] }) => name.text === option && to?.text === "to",
    );
    return [
      {
        ...word,
        removed: "1.8.0",
        replacedBy: "transfer",
        beside:
          all[0] === old
            ? [
                line(
                  ["transfer", ...zones],
                  all.map(({ args }) => line(args)),
                ),
              ]
            : [],
        advice: `write the directive 'transfer' in the server block, with '${old.args.map(({ text }) => text).join(" ")}'`,
      },
    ];
  }
  return [];
}

/** The zones that the plugin serves, or else those of the server block. Reverse zones of `kubernetes` were never transferred. */
function transferredZones(block: ServerBlock, { name, args }: Directive) {
  const own = name.text === "file" || name.text === "auto" ? args.slice(1) : args;
  if (name.text === "auto") return own;
  if (name.text !== "kubernetes") return own.length > 0 ? own : zonesOf(block);
  const [first] = own.length > 0 ? own : zonesOf(block);
  return first === undefined ? [] : [first];
}

function zonesOf({ keys }: ServerBlock): string[] {
  return keys.map(({ text }) => text.replace(/^\w+:\/\//, "").replace(/:\d+$/, ""));
}
