/**
 * The pods that a cluster would make of Deployments and the like. A folder has no controller and no network, so they only stand in, with made-up addresses,
 * and only where the configuration asks for it.
 */
import { isObject, member, textEntries, textMember } from "../objects/json.ts";
import type { ManifestPod } from "./endpoint-controller.ts";
import type { WorkloadObject } from "./manifest-object.ts";

/** A file can ask for any number, and each replica takes memory. */
const MOST_REPLICAS = 1000;

/** The network for benchmarks (RFC 2544), 198.18.0.0/15: no host has these addresses, and no route leads there. */
const NETWORK_OCTET = 198;
const FIRST_OCTET = 18;
const NETWORK_BITS = 17;

/** The labels of the pods that a cluster makes of it. */
export function templateLabels({ value }: WorkloadObject): ReadonlyMap<string, string> {
  return new Map(textEntries(member(template(value), "metadata"), "labels"));
}

/** The number of pods that a cluster makes of it; of a DaemonSet one for each node, of which a laptop is one. */
export function replicasOf({ kind, value }: WorkloadObject): number {
  const replicas = member(member(value, "spec"), "replicas");
  if (kind === "DaemonSet" || typeof replicas !== "number" || !Number.isInteger(replicas)) return 1;
  return Math.min(Math.max(replicas, 0), MOST_REPLICAS);
}

/** One pod for each replica. Addresses depend on names alone, so that they stay over changes of other files, but for rare collisions. */
export function standInPods(workloads: readonly WorkloadObject[]): ManifestPod[] {
  const taken = new Set<number>();
  const order = (a: WorkloadObject, b: WorkloadObject): number => (keyOf(a) < keyOf(b) ? -1 : 1);
  return [...workloads].sort(order).flatMap((workload) => {
    const { kind, object, value } = workload;
    const labels = templateLabels(workload);
    const podSpec = member(template(value), "spec");
    return Array.from({ length: replicasOf(workload) }, (_, index): ManifestPod => {
      const name = `${object.name}-${index}`;
      const podIP = addressOf(`${keyOf(workload)}/${index}`, taken);
      // A StatefulSet gives its pods the names that they have below its Service.
      const names =
        kind === "StatefulSet"
          ? { hostname: name, subdomain: textMember(member(value, "spec"), "serviceName") }
          : {};
      const spec = { ...(isObject(podSpec) && podSpec), ...names };
      return {
        namespace: object.namespace,
        name,
        labels,
        value: { spec, status: { podIP, podIPs: [{ ip: podIP }] } },
      };
    });
  });
}

function template(value: WorkloadObject["value"]): unknown {
  return member(member(value, "spec"), "template");
}

function keyOf({ kind, object }: WorkloadObject): string {
  return `${object.namespace}/${object.name}/${kind}`;
}

function addressOf(key: string, taken: Set<number>): string {
  const size = 2 ** NETWORK_BITS;
  let host = hashOf(key) % size;
  // The first and the last address of a network belong to no host.
  while (taken.size < size - 2 && (host === 0 || host === size - 1 || taken.has(host)))
    host = (host + 1) % size;
  taken.add(host);
  return [NETWORK_OCTET, FIRST_OCTET + (host >>> 16), (host >>> 8) & 0xff, host & 0xff].join(".");
}

/** FNV-1a, over 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const octet of Buffer.from(text)) hash = Math.imul(hash ^ octet, 0x01000193) >>> 0;
  return hash;
}
