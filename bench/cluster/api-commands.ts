/** The messages between the benchmark and its API, two processes. */
import type { ListingTimes } from "./api-server.ts";
import type { ClusterSize } from "./cluster-shape.ts";

/** As JSON on the command line. */
export interface ApiStart {
  readonly size: ClusterSize;
  readonly certificate: string;
  readonly key: string;
  readonly streamsLists: boolean;
}

export type ApiCommand =
  /** Answered by `listed`. */
  | { readonly to: "awaitLists"; readonly kinds: number }
  | { readonly to: "forget" }
  /** Answered by `churned`. */
  | {
      readonly to: "churn";
      /** Events a second. */
      readonly rate: number;
      readonly seconds: number;
      /** Every n-th event moves the watched pod; 0 for none. */
      readonly watchedEvery: number;
    }
  /** The Service of `APPEARING_SERVICE` comes and goes. Answered by `appeared`. */
  | { readonly to: "appear"; readonly times: number; readonly everyMs: number }
  | ({ readonly to: "change" } & ChangeOptions)
  | { readonly to: "stopChanges" };

/**
 * Creates, changes and deletes Services and slices, up to this many changes or until {@link ApiCommand}
 * `stopChanges`. Answered by `changed`.
 */
export interface ChangeOptions {
  /** Changes a second. */
  readonly rate: number;
  readonly changes: number;
  /** So many are sent at once, one after the other in one frame. */
  readonly together: number;
  /** Whether every other change toggles the readiness of an endpoint in a slice of the cluster. Default false. */
  readonly mixed?: boolean;
}

export type ApiReport =
  | { readonly about: "listening"; readonly port: number }
  | ({ readonly about: "listed" } & ListingTimes)
  | {
      readonly about: "churned";
      readonly events: number;
      /** New pods of the watched Service, and when they were told, by `monotonicMilliseconds`. */
      readonly moves: readonly (readonly [pod: number, sentAt: number])[];
      /** How often V8 collected garbage of the API by itself: whoever waited for an event meanwhile waited for that. */
      readonly collections: number;
    }
  | {
      readonly about: "appeared";
      /** Addresses of the Service, by number, and when it was told. */
      readonly services: readonly (readonly [service: number, sentAt: number])[];
    }
  | { readonly about: "changed"; readonly changes: number };
