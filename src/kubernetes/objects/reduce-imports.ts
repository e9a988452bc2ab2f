/**
 * ServiceImport (multicluster.x-k8s.io) -> {@link Service}: to DNS it is a service of another zone (KEP-1645). Nothing here throws.
 */
import { listMember, member, textMember } from "./json.ts";
import type { Reduced, Service } from "./objects.ts";
import { type ReduceOptions, readAddresses, readIdentity, readPorts } from "./reduce.ts";

export function reduceServiceImport(value: unknown, options: ReduceOptions): Reduced<Service> {
  const identity = readIdentity(value, options);
  if ("problem" in identity) return identity;
  const spec = member(value, "spec");
  const rest = {
    externalName: "",
    ports: readPorts(listMember(spec, "ports"), options),
    publishNotReadyAddresses: false,
    externalAddresses: NO_TEXTS,
  };
  const type = textMember(spec, "type");
  if (type === "Headless")
    return { object: { ...identity.object, type: "headless", clusterAddresses: [], ...rest } };
  if (type !== "ClusterSetIP" && type !== "")
    return { problem: `spec.type "${type}" is neither ClusterSetIP nor Headless` };
  const texts = listMember(spec, "ips").filter((text) => typeof text === "string" && text !== "");
  const clusterAddresses = readAddresses(texts.map(String));
  if (texts.length > 0 && clusterAddresses.length === 0)
    return { problem: `spec.ips: "${String(texts[0])}" is not an IP address` };
  return { object: { ...identity.object, type: "clusterIP", clusterAddresses, ...rest } };
}

const NO_TEXTS: readonly string[] = [];
