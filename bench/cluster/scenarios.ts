import { FULL_SIZE, THOUSAND_SERVICES } from "./cluster-shape.ts";
import type { ChangeScenario } from "./measure-changes.ts";

/** The ways in which the live cluster is measured. */
export interface Scenario {
  readonly name: string;
  /** One line for the report. */
  readonly about: string;
  /** Whether the API sends lists as the beginning of a watch (Kubernetes 1.34 and later do), or in pages. */
  readonly lists: "streamed" | "paged";
  readonly cache: boolean;
  /** With `pods verified`: all pods are watched too. */
  readonly pods: boolean;
  readonly measuresLatency: boolean;
  readonly measuresChurn: boolean;
}

/** Clusters in which Services and slices come, change and go. */
export const CHANGE_SCENARIOS = {
  usual: { name: "1,000 Services", size: THOUSAND_SERVICES },
  large: { name: "8,000 Services", size: FULL_SIZE },
} as const satisfies Readonly<Record<string, ChangeScenario>>;

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "streamed",
    about: "lists as the beginning of a watch, `cache 30`",
    lists: "streamed",
    cache: true,
    pods: false,
    measuresLatency: true,
    measuresChurn: true,
  },
  {
    name: "paged",
    about: "lists page by page, no cache",
    lists: "paged",
    cache: false,
    pods: false,
    measuresLatency: true,
    measuresChurn: false,
  },
  {
    name: "pods",
    about: "as `streamed`, with `pods verified`",
    lists: "streamed",
    cache: true,
    pods: true,
    measuresLatency: false,
    measuresChurn: false,
  },
];
