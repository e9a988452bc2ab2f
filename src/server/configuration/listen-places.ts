/** The listeners that the server blocks of a configuration are on. */
import { type DiagnosticSink, formatPlace } from "../../corefile/diagnostic.ts";
import { formatServerKey, type Scheme, type ServerKey } from "../../corefile/server-key.ts";
import type { Directive } from "../../corefile/tree.ts";
import type { Name } from "../../dns/name.ts";
import { canonicalHost, hostsOverlap } from "../../lib/net/listen-address.ts";
import type { PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import type { BlockSettings } from "../../plugin/contract/site.ts";

/** One key of a server block on one listener. */
export interface PlacedKey {
  readonly label: string;
  readonly key: ServerKey;
  readonly zone: Name;
  /** As the first block of the listener spells it; empty for all addresses. */
  readonly host: string;
}

interface PlacedBlock {
  readonly keys: readonly ServerKey[];
  readonly zones: readonly Name[];
  readonly settings: Pick<BlockSettings, "listenHosts" | "listensNowhere">;
}

/**
 * The listeners of each block, in the order of the blocks. An address has one listener however it is spelled
 * (`0.0.0.0` is `::`, which is no `bind` at all), named by its first spelling. CoreDNS opens a socket for each
 * spelling, and leaves to the kernel which of them gets a query.
 */
export function placeListeners(blocks: readonly PlacedBlock[]): readonly (readonly PlacedKey[])[] {
  const listeners = new Map<string, { readonly label: string; readonly host: string }>();
  return blocks.map((block) => {
    const placed = new Map<string, PlacedKey>();
    for (const [index, key] of block.keys.entries()) {
      const zone = block.zones[index];
      if (zone === undefined) continue;
      for (const host of hostsOf(block)) {
        const place = `${key.scheme} ${canonicalHost(host)} ${key.port}`;
        const listener = listeners.get(place) ?? { label: listenerLabel(key, host), host };
        listeners.set(place, listener);
        const id = `${index} ${listener.label}`;
        if (!placed.has(id)) placed.set(id, { ...listener, key, zone });
      }
    }
    return [...placed.values()];
  });
}

function hostsOf({ settings }: PlacedBlock): readonly string[] {
  if (settings.listensNowhere) return [];
  return settings.listenHosts.length > 0 ? settings.listenHosts : ALL_ADDRESSES;
}

const ALL_ADDRESSES = [""];

/** `dns://:53`, `dns://127.0.0.1:53`, `dns://[::1]:53`: the `server` label of metrics (docs/spec/coredns-behaviour.md#listeners). */
function listenerLabel(key: ServerKey, host: string): string {
  return `${key.scheme}://${host.includes(":") ? `[${host}]` : host}:${key.port}`;
}

type SocketKind = "tcp" | "udp";

const SOCKET_KINDS: Readonly<Record<Scheme, readonly SocketKind[]>> = {
  dns: ["tcp", "udp"],
  tls: ["tcp"],
  https: ["tcp"],
  grpc: ["tcp"],
  quic: ["udp"],
  https3: ["udp"],
};

/** Whether two sockets compete for the same packets: they have the same address, or one of them has all addresses. */
export function socketsOverlap(one: SocketPlace, other: SocketPlace): boolean {
  if (one.port !== other.port || !hostsOverlap(one.host, other.host)) return false;
  return SOCKET_KINDS[one.scheme].some((kind) => SOCKET_KINDS[other.scheme].includes(kind));
}

export interface SocketPlace {
  readonly scheme: Scheme;
  readonly host: string;
  readonly port: number;
}

/**
 * Two protocols at one address and port, DNS or HTTP: a client would reach either. CoreDNS starts, and half of the
 * connections fail.
 */
export function reportCollisions(
  blocks: readonly (PlacedBlock & { readonly plugins: readonly PlacedPlugin[] })[],
  report: DiagnosticSink,
): void {
  const taken = new Map<string, ServerKey>();
  const told = new Set<ServerKey>();
  const overTcp = new Map<number, TakenPort[]>();
  for (const block of blocks) {
    for (const host of hostsOf(block)) {
      for (const key of block.keys) {
        // The system picks a new port for each port 0.
        if (key.port === 0) continue;
        for (const kind of SOCKET_KINDS[key.scheme]) {
          const place = `${kind} ${canonicalHost(host)} ${key.port}`;
          const other = taken.get(place);
          if (other === undefined) {
            taken.set(place, key);
            if (kind === "tcp") overTcp.set(key.port, [...(overTcp.get(key.port) ?? []), { host, key }]);
          } else if (other.scheme !== key.scheme && !told.has(key)) {
            told.add(key);
            reportCollision(key, other, report);
          }
        }
      }
    }
  }
  for (const { plugins } of blocks) reportPagesInTheWay(plugins, overTcp, report);
}

/** An HTTP endpoint where a server block takes TCP connections, possibly at all addresses. */
function reportPagesInTheWay(
  plugins: readonly PlacedPlugin[],
  keysByPort: ReadonlyMap<number, readonly TakenPort[]>,
  report: DiagnosticSink,
): void {
  for (const { definition, configs, directive, directives } of plugins) {
    for (const [index, config] of configs.entries()) {
      const address = definition.httpAddress?.(config);
      if (address === undefined) continue;
      const separator = address.lastIndexOf(":");
      const host = address.slice(0, separator).replace(/^\[|\]$/g, "");
      const other = keysByPort
        .get(Number(address.slice(separator + 1)))
        ?.find((taken) => hostsOverlap(taken.host, host));
      if (other === undefined) continue;
      const { span } = (directives[index] ?? directive).name;
      const key = `${formatServerKey(other.key)} at ${formatPlace(other.key.span)}`;
      const message = `cannot serve ${definition.name} on ${address} - ${key} listens on the same port`;
      report.error("KEY_PORT_TAKEN", span, message, { expected: "a port of its own" });
    }
  }
}

interface PlacedPlugin {
  readonly definition: Pick<PluginDefinition<unknown>, "name" | "httpAddress">;
  readonly configs: readonly unknown[];
  readonly directive: Directive;
  readonly directives: readonly Directive[];
}

interface TakenPort {
  readonly host: string;
  readonly key: ServerKey;
}

function reportCollision(key: ServerKey, other: ServerKey, report: DiagnosticSink): void {
  const at = formatPlace(other.span);
  report.error(
    "KEY_PORT_TAKEN",
    key.span,
    `cannot serve ${formatServerKey(key)} - ${formatServerKey(other)} at ${at} listens on the same port`,
    { expected: "a port of its own for each protocol, or a 'bind' to another address" },
  );
}
