/** Whom `explain` asks: a configuration made for the question, or a running server. */
import type { ExplainQuestion, Explanation } from "../../plugin/contract/explanation.ts";
import { FlagError } from "../flag-table.ts";
import type { PodDns } from "./pod-resolver.ts";
import type { SearchingPod } from "./pod-search.ts";

export interface Explainer {
  /** @throws ExplainError, FlagError */
  explain(question: ExplainQuestion): Promise<Explanation>;
  /** @throws FlagError where there is no such pod, or none can be looked for */
  findPod(namespace: string, name: string): Promise<FoundPod>;
  stop(): Promise<void>;
}

export interface FoundPod {
  readonly pod: PodDns & SearchingPod;
  /** The cluster domain, without final dot. */
  readonly domain: string;
}

/** What keeps a question from being explained, with its remedy, on one line. */
export function fault(message: string): FlagError {
  return new FlagError(message, 2, false);
}
