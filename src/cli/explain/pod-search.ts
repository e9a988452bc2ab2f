/** Asks for a name as a pod's libc would, one attempt after the other. */
import type { Explanation } from "./explanation.ts";
import type { ManifestPod } from "./manifest-pods.ts";
import { type Libc, planSearch, type ResolverSettings, whyEnough } from "./pod-resolver.ts";

export interface PodSearch {
  /** `namespace/name`. */
  readonly pod: string;
  readonly address: string | undefined;
  readonly libc: Libc;
  readonly settings: ResolverSettings;
  /** Why the names are asked for in this order. */
  readonly reason: string;
  readonly attempts: readonly {
    readonly explanation: Explanation;
    /** Why it is the last one; `undefined` for those after which the search goes on. */
    readonly ending: string | undefined;
  }[];
}

/** @param ask asks the server for one name */
export async function searchAsPod(
  name: string,
  pod: ManifestPod,
  settings: ResolverSettings,
  libc: Libc,
  ask: (name: string) => Promise<Explanation>,
): Promise<PodSearch> {
  const plan = planSearch(name, settings, libc);
  const attempts: { explanation: Explanation; ending: string | undefined }[] = [];
  for (const candidate of plan.names) {
    const explanation = await ask(candidate);
    const { message } = explanation;
    const result = { rcode: message?.rcode ?? "no answer", hasAnswer: message?.hasAnswer ?? false };
    const ending = whyEnough(result, libc);
    attempts.push({ explanation, ending });
    if (ending !== undefined) break;
  }
  return {
    pod: `${pod.namespace}/${pod.name}`,
    address: pod.addresses[0],
    libc,
    settings,
    reason: plan.reason,
    attempts,
  };
}
