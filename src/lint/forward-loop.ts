import type { Token } from "../corefile/tokens.ts";
import type { Name } from "../dns/name.ts";
import { isWildcardHost } from "../lib/net/listen-address.ts";
import { parseHostPort } from "../plugin/config/values.ts";
import { areRelated } from "./back-ends.ts";
import { canonicalAddress } from "./canonical-address.ts";
import type { LintBlock } from "./lint-block.ts";
import { hasView, type Listeners } from "./listeners.ts";
import type { LintInput, LintRule } from "./rule.ts";

/** Finds a `forward` to an address of this server that leads back to the same server block. */
export const forwardLoop: LintRule = {
  code: "LINT_FORWARD_LOOP",
  about: "queries are forwarded to this server itself",

  check(input, report) {
    const edges = edgesByBlock(input);
    for (const [block, own] of edges) {
      for (const edge of own) {
        if (!leadsTo(block, edge, edges)) continue;
        report.warning(
          forwardLoop.code,
          edge.token.span,
          `'${edge.token.text}' is this server itself: forwarding '${edge.zone}' to it is a loop`,
          { expected: "the address of another server" },
        );
      }
    }
  },
};

interface Edge {
  readonly token: Token;
  readonly zone: Name;
  readonly target: LintBlock;
}

function leadsTo(block: LintBlock, first: Edge, edges: ReadonlyMap<LintBlock, readonly Edge[]>): boolean {
  const seen = new Set<LintBlock>();
  const waiting = [first.target];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    if (at === block) return true;
    if (seen.has(at)) continue;
    seen.add(at);
    for (const { zone, target } of edges.get(at) ?? [])
      if (areRelated(zone, first.zone)) waiting.push(target);
  }
  return false;
}

/** For each block, the zones that it forwards within this server. */
function edgesByBlock(input: LintInput): Map<LintBlock, Edge[]> {
  const ports = new Set(input.blocks.flatMap(({ keys }) => keys.map(({ port }) => port)));
  const machine = new Set(input.machine.addresses().flatMap((address) => canonicalAddress(address) ?? []));
  const edges = new Map<LintBlock, Edge[]>();
  for (const block of input.blocks) {
    const own = input
      .backEnds(block)
      .filter(({ name }) => name === "forward")
      .flatMap(({ directive, zones }) =>
        directive.args.slice(1).flatMap((token) => {
          const place = parseHostPort(token.text.replace(/^dns:\/\//i, ""), 53);
          if (place === undefined || !ports.has(place.port)) return [];
          return zones.flatMap((zone) => {
            const target = blockAt(place, zone, input.listeners, machine);
            return target === undefined || hasView(target) ? [] : [{ token, zone, target }];
          });
        }),
      );
    if (own.length > 0) edges.set(block, own);
  }
  return edges;
}

/** The block that gets queries for `zone` at an address. A listener on that address takes precedence over one on all addresses. */
function blockAt(
  { host, port }: { readonly host: string; readonly port: number },
  zone: Name,
  listeners: Listeners,
  machine: ReadonlySet<string>,
): LintBlock | undefined {
  const address = canonicalAddress(host);
  if (address === undefined) return undefined;
  const isBoundTo = ({ settings }: LintBlock): boolean =>
    settings.listenHosts.some((own) => canonicalAddress(own) === address);
  const bound = listeners.route(port, zone, isBoundTo);
  if (bound !== undefined) return bound.block;
  if (!isLoopback(address) && !machine.has(address)) return undefined;
  const isOnAll = ({ settings: { listenHosts } }: LintBlock): boolean =>
    listenHosts.length === 0 || listenHosts.some(isWildcardHost);
  return listeners.route(port, zone, isOnAll)?.block;
}

/** Docker's resolver in its containers uses this loopback address. */
const DOCKER_RESOLVER = "7f00000b";

function isLoopback(hex: string): boolean {
  if (hex === DOCKER_RESOLVER) return false;
  return hex.length === 8 ? hex.startsWith("7f") || hex === "00000000" : /^0{31}[01]$/.test(hex);
}
