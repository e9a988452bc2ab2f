/** Derives a pod's workload from its name: controllers follow naming rules. */
import { shellWord } from "./command-words.ts";

export interface WorkloadName {
  readonly namespace: string;
  /** As kubectl has it; `pod` if the name matches no rule. */
  readonly kind: "deployment" | "daemonset" | "statefulset" | "pod";
  readonly name: string;
}

/** The letters of hashes and random suffixes: no vowels and no look-alikes (k8s.io/apimachinery, util/rand). */
const SAFE = "[bcdfghjklmnpqrstvwxz2456789]";
const OF_DEPLOYMENT = new RegExp(`^(.+)-${SAFE}{6,10}-${SAFE}{5}$`);
const OF_DAEMON_SET = new RegExp(`^(.+)-${SAFE}{5}$`);
const OF_STATEFUL_SET = /^(.+)-\d{1,4}$/;

/** @param workload `namespace/pod`, as the console names clients */
export function workloadName(workload: string): WorkloadName {
  const slash = workload.indexOf("/");
  const namespace = workload.slice(0, slash);
  const pod = workload.slice(slash + 1);
  for (const [pattern, kind] of [
    [OF_DEPLOYMENT, "deployment"],
    [OF_DAEMON_SET, "daemonset"],
    [OF_STATEFUL_SET, "statefulset"],
  ] as const) {
    const name = pattern.exec(pod)?.[1];
    if (name !== undefined) return { namespace, kind, name };
  }
  return { namespace, kind: "pod", name: pod };
}

/** `shop/deployment/web`. */
export function workloadText({ namespace, kind, name }: WorkloadName): string {
  return `${namespace}/${kind}/${name}`;
}

/** Sets these resolver options (`resolv.conf(5)`) in every pod of the workload. */
export function dnsConfigPatch(
  { namespace, kind, name }: WorkloadName,
  option: { readonly name: string; readonly value?: string },
): string {
  const options = { dnsConfig: { options: [option] } };
  if (kind === "pod")
    return `# in the manifest that makes ${namespace}/${name}:\nspec:\n  dnsConfig:\n    options:\n      - name: ${option.name}${option.value === undefined ? "" : `\n        value: "${option.value}"`}`;
  const patch = JSON.stringify({ spec: { template: { spec: options } } });
  return `kubectl -n ${shellWord(namespace)} patch ${kind} ${shellWord(name)} -p ${shellWord(patch)}`;
}
