/** What kube-dns serves, as a Corefile. */
import type { Name } from "../../dns/name.ts";
import { FRONT } from "./front-plugin.ts";

export interface KubeDnsServing {
  readonly domain: Name;
  readonly bind: string;
  readonly port: number;
  /** Lines of the directive `kubernetes` that say where the cluster is. */
  readonly cluster: readonly string[];
  /** As `forward` takes them; none where nobody is to be asked. */
  readonly upstreams: readonly string[];
  /** Domain -> servers, as `forward` takes them. */
  readonly stubDomains: ReadonlyMap<string, readonly string[]>;
  readonly profiling: boolean;
}

export function kubeDnsCorefile(serving: KubeDnsServing): string {
  const { domain, bind, port, cluster, upstreams, stubDomains, profiling } = serving;
  const common = [`    bind ${bind}`, `    ${FRONT}`, "    errors"];
  const blocks = [
    [
      `.:${port} {`,
      ...common,
      "    chaos",
      ...(profiling ? ["    pprof localhost:6060"] : []),
      `    kubernetes ${domain} in-addr.arpa ip6.arpa {`,
      ...cluster.map((line) => `        ${line}`),
      "        kube_dns",
      "        ttl 30",
      "        fallthrough in-addr.arpa ip6.arpa",
      "    }",
      ...forwardLines(upstreams),
      "}",
    ],
  ];
  for (const [zone, servers] of stubDomains) {
    // With no server left its names fail, and do not go to whoever is asked for everything else.
    blocks.push([`${zone}:${port} {`, ...common, ...forwardLines(servers), "}"]);
  }
  return `${blocks.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function forwardLines(servers: readonly string[]): string[] {
  if (servers.length === 0) return [];
  return [`    forward . ${servers.join(" ")} {`, "        policy sequential", "    }"];
}

/** A word as it may stand in a Corefile. */
export function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
