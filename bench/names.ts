/** The names that the workloads ask for, and what their answers must be. */

/** Everything below is a name that the upstream answers for, each with the same addresses. */
export const EXTERNAL_ZONE = "bench.example";
export const EXTERNAL_ADDRESSES = { A: "192.0.2.10", AAAA: "2001:db8::10" } as const;
/** Seconds. Longer than any run, so that nothing expires within one. */
export const EXTERNAL_TTL = 3600;

/** Every name below it has the same address: made by a template, or by what a server without templates has for that. */
export const SINKHOLE_ZONE = "sinkhole.bench.test";
export const SINKHOLE_ADDRESS = "192.0.2.66";

export const CLUSTER_ZONE = "cluster.local";
/** Seconds: what `kubernetes` says unless told otherwise. */
export const CLUSTER_TTL = 5;

export interface ClusterService {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  /** `service-17.namespace-1.svc.cluster.local` */
  readonly domain: string;
}

const SERVICES = 1_000;
const SERVICES_A_NAMESPACE = 100;

export const CLUSTER_SERVICES: readonly ClusterService[] = Array.from({ length: SERVICES }, (_, index) => {
  const name = `service-${index}`;
  const namespace = `namespace-${Math.floor(index / SERVICES_A_NAMESPACE)}`;
  const host = index + 256;
  return {
    name,
    namespace,
    address: `10.96.${host >> 8}.${host & 0xff}`,
    domain: `${name}.${namespace}.svc.${CLUSTER_ZONE}`,
  };
});

/** The queries of a pod in the first namespace before a name with fewer than five dots (`ndots:5`). */
export const SEARCH_PATH: readonly string[] = [
  `namespace-0.svc.${CLUSTER_ZONE}`,
  `svc.${CLUSTER_ZONE}`,
  CLUSTER_ZONE,
];

export function externalName(index: number): string {
  return `host-${index}.${EXTERNAL_ZONE}`;
}
