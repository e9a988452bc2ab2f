/** The Corefile of all workloads: the chain of a production cluster, with or without a cache. */
import { CLUSTER_TTL, CLUSTER_ZONE, EXTERNAL_TTL } from "../names.ts";
import type { Deployment } from "./server.ts";

/** For Portolan, whose cluster names come from manifests. */
export function portolanCorefile(deployment: Deployment): string {
  return corefile(
    deployment,
    `kubernetes ${CLUSTER_ZONE} in-addr.arpa ip6.arpa {
        manifests ${deployment.cluster.manifests}
        pods insecure
        ttl ${CLUSTER_TTL}
        fallthrough in-addr.arpa ip6.arpa
    }`,
  );
}

/** For CoreDNS, which needs an API server for `kubernetes`: the same names come from a zone file. */
export function zoneFileCorefile(deployment: Deployment): string {
  return corefile(deployment, `file ${deployment.cluster.zoneFile} ${CLUSTER_ZONE}`);
}

function corefile(deployment: Deployment, clusterNames: string): string {
  const { port, metricsPort, upstreamPort, cacheEntries, directives = [], encrypted } = deployment;
  const [key, tls] =
    encrypted === undefined
      ? ["", ""]
      : [` ${encrypted.scheme}://.:${encrypted.port}`, `\n    tls ${encrypted.certificate} ${encrypted.key}`];
  const shaping = directives.map((line) => `\n    ${line}`).join("");
  const cache =
    cacheEntries === 0
      ? ""
      : `
    cache ${EXTERNAL_TTL} {
        success ${cacheEntries}
        denial ${cacheEntries}
    }`;
  return `.:${port}${key} {
    bind 127.0.0.1${tls}
    errors
    prometheus 127.0.0.1:${metricsPort}
    loop
    loadbalance${shaping}${cache}
    ${clusterNames}
    forward . 127.0.0.1:${upstreamPort}
}
`;
}
