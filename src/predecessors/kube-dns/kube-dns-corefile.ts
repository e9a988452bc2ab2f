/** The Corefile of kube-dns. */
import type { Name } from "../../dns/name.ts";
import { FRONT } from "./front-plugin.ts";

export interface KubeDnsServing {
  readonly domain: Name;
  readonly bind: string;
  readonly port: number;
  /** Lines of the directive `kubernetes` that select the cluster. */
  readonly cluster: readonly string[];
  /** In the form of `forward`; empty for no upstream. */
  readonly upstreams: readonly string[];
  /** Domain -> servers, in the form of `forward`. */
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
    // Without a server, names of the stub domain fail: they must not go to the upstreams of other names.
    blocks.push([`${zone}:${port} {`, ...common, ...forwardLines(servers), "}"]);
  }
  return `${blocks.map((lines) => lines.join("\n")).join("\n\n")}\n`;
}

function forwardLines(servers: readonly string[]): string[] {
  if (servers.length === 0) return [];
  return [`    forward . ${servers.join(" ")} {`, "        policy sequential", "    }"];
}

/** Quotes a word for a Corefile. */
export function quoted(text: string): string {
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
