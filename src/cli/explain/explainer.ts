/** The two ways to explain: a configuration run for the question, or a running server. */
import type { ExplainQuestion, Explanation } from "../../plugin/contract/explanation.ts";
import { FlagError } from "../flag-table.ts";
import type { PodDns } from "./pod-resolver.ts";
import type { SearchingPod } from "./pod-search.ts";

export interface Explainer {
  /** @throws ExplainError, FlagError */
  explain(question: ExplainQuestion): Promise<Explanation>;
  /** @throws FlagError if there is no such pod, or pods cannot be looked up */
  findPod(namespace: string, name: string): Promise<FoundPod>;
  stop(): Promise<void>;
}

export interface FoundPod {
  readonly pod: PodDns & SearchingPod;
  /** The cluster domain, without the final dot. */
  readonly domain: string;
}

/** The reason why a question cannot be explained, and the remedy, in one line. */
export function fault(message: string): FlagError {
  return new FlagError(message, 2, false);
}
