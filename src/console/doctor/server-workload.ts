/** The workload of the examined server, for commands that users run as they are printed. */
import type { Capture } from "./capture.ts";
import { shellWord } from "./command-words.ts";
import { type WorkloadName, workloadName } from "./workload-names.ts";

/** By its manifest, else by the name of its pod; `undefined` for a server that runs in no pod, as far as is known. */
export function serverWorkload({ last, pod }: Pick<Capture, "last" | "pod">): WorkloadName | undefined {
  const [, kind, name = ""] = /^(deployment|daemonset|statefulset|pod)\/(.+)$/.exec(pod?.owner ?? "") ?? [];
  if (pod !== undefined && isKind(kind)) return { namespace: pod.namespace, kind, name };
  const namespace = last?.machine.namespace ?? undefined;
  if (last === undefined || namespace === undefined) return undefined;
  return workloadName(`${namespace}/${last.now.hostname}`);
}

function isKind(word: string | undefined): word is WorkloadName["kind"] {
  return word !== undefined;
}

/** `kubectl -n kube-system get deployment coredns`, with any verb. */
export function kubectl(verb: string, { namespace, kind, name }: WorkloadName): string {
  return `kubectl -n ${shellWord(namespace)} ${verb} ${kind} ${shellWord(name)}`;
}
