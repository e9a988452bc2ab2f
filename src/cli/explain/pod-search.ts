/** Queries a name as a pod's libc would, one attempt after the other. */
import type { Explanation } from "../../plugin/contract/explanation.ts";
import { type LibcName, planSearch, type ResolverSettings, whyEnough } from "./pod-resolver.ts";

export interface PodSearch {
  /** `namespace/name`. */
  readonly pod: string;
  readonly address: string | undefined;
  readonly libc: LibcName;
  readonly settings: ResolverSettings;
  /** The reason for the order of the names. */
  readonly reason: string;
  /** Settings of the pod that are assumed because they are unknown, in words. */
  readonly assumed: readonly string[];
  readonly attempts: readonly {
    readonly explanation: Explanation;
    /** The reason why the search ends here; `undefined` for all attempts but the last. */
    readonly ending: string | undefined;
  }[];
}

/** A pod that sends queries. */
export interface SearchingPod {
  readonly namespace: string;
  readonly name: string;
  /** The first is the source of the queries. */
  readonly addresses: readonly string[];
  readonly assumed: readonly string[];
}

/** @param ask queries the server for one name */
export async function searchAsPod(
  name: string,
  pod: SearchingPod,
  settings: ResolverSettings,
  libc: LibcName,
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
    assumed: pod.assumed,
    attempts,
  };
}
