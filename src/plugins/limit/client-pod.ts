/** The pod of a client, by the metadata of `kubernetes`. */
import { workloadName, workloadText } from "../../console/doctor/workload-names.ts";
import type { Query } from "../../plugin/index.ts";

/** @returns "" if no pod with the client's address is known */
export function namespaceOf(query: Query): string {
  return query.metadataValue("kubernetes/client-namespace") ?? "";
}

/** `shop/deployment/web`. */
export function workloadOf(query: Query, namespace: string): string {
  const pod = query.metadataValue("kubernetes/client-pod-name") ?? "";
  return workloadText(workloadName(`${namespace}/${pod}`));
}
