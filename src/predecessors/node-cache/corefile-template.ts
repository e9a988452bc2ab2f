/** Turns the template of a Corefile into the Corefile of a node's cache (docs/spec/kube-dns.md#node-cache). */
import type { KubeDnsConfig } from "../kube-dns/config-map.ts";
import { forwardAddress, splitServer } from "../server-addresses.ts";

export interface TemplateValues {
  readonly localAddresses: readonly string[];
  /** Address of the service in front of the cluster's DNS servers; `undefined` if unknown. */
  readonly clusterDns: string | undefined;
  readonly config: KubeDnsConfig;
  readonly port: number;
}

export interface RenderedCorefile {
  readonly text: string;
  /** Differences from the intended configuration, one per line. */
  readonly warnings: readonly string[];
}

const UPSTREAM = "__PILLAR__UPSTREAM__SERVERS__";
const CLUSTER_DNS = "__PILLAR__CLUSTER__DNS__";
const LOCAL_DNS = "__PILLAR__LOCAL__DNS__";
const DNS_SERVER = "__PILLAR__DNS__SERVER__";

/** Custom upstreams are queried over UDP, as their owners expect. */
const FORCED_UPSTREAM =
  /^([ \t]*)forward[ \t]+\.[ \t]+__PILLAR__UPSTREAM__SERVERS__[ \t]*\{\s*force_tcp\s*\}[ \t]*$/m;

/** A configuration that makes no valid Corefile. */
export class CorefileTemplateError extends Error {
  override readonly name = "TemplateError";
}

/** @throws TemplateError */
export function renderCorefile(template: string, values: TemplateValues): RenderedCorefile {
  const { localAddresses, clusterDns, config, port } = values;
  const warnings: string[] = [];
  let text = template;
  const upstreams = config.upstreamNameservers.map((server) => addressOf(server, "upstreamNameservers"));
  if (upstreams.length > 0 && text.includes(UPSTREAM)) {
    if (FORCED_UPSTREAM.test(text))
      text = text.replace(FORCED_UPSTREAM, `$1forward . ${upstreams.join(" ")}`);
    else warnings.push(`no 'forward . ${UPSTREAM} { force_tcp }' in the template: only the word is replaced`);
  }
  text = text.replaceAll(UPSTREAM, upstreams.length > 0 ? upstreams.join(" ") : "/etc/resolv.conf");
  if (text.includes(CLUSTER_DNS)) {
    if (clusterDns === undefined)
      throw new CorefileTemplateError(
        "the address of the cluster's DNS service is unknown: see -upstreamsvc",
      );
    text = text.replaceAll(CLUSTER_DNS, clusterDns);
  }
  const local = localAddresses.join(" ");
  text = text.replaceAll(LOCAL_DNS, local).replaceAll(DNS_SERVER, "");
  for (const [domain, servers] of config.stubDomains) {
    const addresses = servers.map((server) => addressOf(server, `stubDomains ${domain}`));
    if (addresses.length === 0) throw new CorefileTemplateError(`stubDomains ${domain}: no server`);
    text = `${text.trimEnd()}\n${stubBlock(domain, port, local, addresses)}`;
  }
  return { text, warnings };
}

function stubBlock(domain: string, port: number, local: string, servers: readonly string[]): string {
  return [
    `${domain}:${port} {`,
    "    errors",
    "    cache 30",
    `    bind ${local}`,
    `    forward . ${servers.join(" ")}`,
    "}",
    "",
  ].join("\n");
}

function addressOf(server: string, key: string): string {
  const split = splitServer(server);
  if (split === undefined) throw new CorefileTemplateError(`${key}: '${server}' is not an address`);
  return forwardAddress(split);
}
