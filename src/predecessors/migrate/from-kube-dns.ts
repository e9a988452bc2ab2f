/** Turns kube-dns's ConfigMap into a Corefile (docs/spec/kube-dns.md#installers), with notes on visible differences. */
import { type CorefileLine, line, textOf } from "../../corefile/history/line.ts";
import type { KubeDnsConfig } from "../kube-dns/config-map.ts";
import type { Migrated, Notice } from "./notice.ts";
import { TODAY } from "./versions.ts";

export interface KubeDnsMigrationOptions {
  /** Without the final dot. */
  readonly domain: string;
  /** Whether `*` in names keeps working. */
  readonly wildcards?: boolean;
}

/**
 * Returns a Corefile that answers as kube-dns did with this configuration, as far as possible. Stub servers given by name are kept:
 * `forward` looks them up at the start.
 */
export function fromKubeDns(
  config: KubeDnsConfig,
  { domain, wildcards = false }: KubeDnsMigrationOptions,
): Migrated {
  const reverse = ["in-addr.arpa", "ip6.arpa"];
  const upstreams =
    config.upstreamNameservers.length === 0 ? ["/etc/resolv.conf"] : config.upstreamNameservers;
  const main = [
    line(["errors"]),
    line(["health"], [line(["lameduck", "5s"])]),
    line(["ready"]),
    line(
      ["kubernetes", domain, ...reverse],
      [
        line(["pods", "insecure"]),
        line(["fallthrough", ...reverse]),
        line(["ttl", "30"]),
        ...(wildcards ? [line(["wildcards"])] : []),
      ],
    ),
    ...federations(config, domain),
    line(["prometheus", ":9153"]),
    line(["forward", ".", ...upstreams], [line(["max_concurrent", "1000"])]),
    line(["cache", "30"]),
    line(["loop"]),
    line(["reload"]),
    line(["loadbalance"]),
  ];
  const stubs = [...config.stubDomains].filter(([, servers]) => servers.length > 0);
  const without = [...config.stubDomains.keys()].filter((stub) => !stubs.some(([other]) => other === stub));
  const stubBlocks = stubs.map(([stub, servers]) =>
    block(`${stub}:53`, [
      line(["errors"]),
      line(["cache", "30"]),
      line(["loop"]),
      line(["forward", ".", ...servers], [line(["max_concurrent", "1000"])]),
    ]),
  );
  return {
    text: [block(".:53", main), ...stubBlocks].join("\n"),
    notices: [...without.map((stub) => serverless(stub)), ...changes(wildcards)],
  };
}

/** Its names go to the upstreams of all other names, as with kube-dns. */
function serverless(stub: string): Notice {
  const notes = [`the stub domain ${stub} has no server and is left out`];
  return { severity: "changed", plugin: "forward", version: TODAY, notes };
}

function federations({ federations: all }: KubeDnsConfig, domain: string): CorefileLine[] {
  if (all.size === 0) return [];
  return [
    line(
      ["federation", domain],
      [...all].map(([name, target]) => line([name, target])),
    ),
  ];
}

function block(key: string, lines: readonly CorefileLine[]): string {
  return `${textOf({ words: [key], block: lines })}\n`;
}

/** The differences to kube-dns's answers. */
function changes(wildcards: boolean): Notice[] {
  return BEHAVIOUR.slice(wildcards ? 1 : 0).map(
    (note): Notice => ({ severity: "changed", plugin: "kubernetes", version: TODAY, notes: [note] }),
  );
}

const BEHAVIOUR = [
  "wildcard labels (*) no longer work, unless 'kubernetes' has 'wildcards'",
  "endpoints without a hostname are named by their address with dashes, not by a hash",
  "dns-version.<domain> exists",
  "the names of namespaces, and svc, exist without records; kube-dns answered NXDOMAIN",
  "CNAME queries for a ClusterIP service are answered without records; kube-dns answered NXDOMAIN",
  "SRV records have priority 0 instead of 10, and no SRV record has port 0",
  "endpoints without a hostname have PTR records",
  "ANY queries are answered without records; kube-dns refused them",
  "an ExternalName that is an IP address is NXDOMAIN; kube-dns answered with the address",
  "negative answers are cached as 'cache' configures",
];
