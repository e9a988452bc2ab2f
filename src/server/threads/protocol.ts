/** The messages between the leader and its followers. Everything is copied by structured cloning. */
import type { LogFormatName } from "../../lib/logging/log-format.ts";
import type { MetricSnapshot } from "../../lib/metrics/metric-snapshot.ts";
import type { CorefileSource } from "../configuration/configuration.ts";
import type { PluginEntry } from "../configuration/plugin-registry.ts";
import type { ListenPlace } from "../run/point-sockets.ts";
import type { FeedMessage } from "./feed.ts";

/** Passed to a follower when its thread starts. */
export interface FollowerSettings {
  /** Number of the data plane, from 1. */
  readonly plane: number;
  readonly plugins: readonly PluginEntry[];
  /** Milliseconds that external plugins may spend on a query; 0 for no bound. */
  readonly pluginBudget: number;
  readonly version: string;
  readonly defaultPort: number | undefined;
  readonly logFormat: LogFormatName;
}

/**
 * - `prepare`: read the Corefile, make and start its plugins. Refused if it differs from the Corefile that the leader
 * read.
 * - `listen`: open the sockets. The data of the leader's plugins is complete by that time.
 * - `commit`, `rollBack`: put the prepared configuration into force, or drop it.
 * - `echo`: answered once the plugins act on all messages that were sent before it.
 * - `measure`: report counters; answered with a list of {@link MetricSnapshot}.
 * - `stop`: answer pending queries, and close everything; answered with {@link LastWords}.
 */
export type FollowerRequest =
  | {
      readonly kind: "prepare";
      readonly generation: number;
      readonly source: CorefileSource;
      readonly sha512: string;
    }
  | { readonly kind: "listen"; readonly places: ReadonlyMap<string, ListenPlace> }
  | { readonly kind: "commit" | "rollBack" }
  /** `othersStay`: other threads go on to answer on the same addresses. */
  | { readonly kind: "stop"; readonly othersStay: boolean }
  | { readonly kind: "echo" }
  | { readonly kind: "measure" };

export type ToFollower =
  | { readonly kind: "request"; readonly id: number; readonly request: FollowerRequest }
  | { readonly kind: "feed"; readonly generation: number; readonly messages: readonly FeedMessage[] }
  /** The latest lines are written: more may come. */
  | { readonly kind: "logged" }
  /** The answer to a question of a plugin; `problem` is the error. */
  | {
      readonly kind: "reply";
      readonly id: number;
      readonly value: unknown;
      readonly problem: string | undefined;
    }
  /** The last message has arrived: the thread may end. A port that closes earlier could lose it. */
  | { readonly kind: "end" };

export type FromFollower =
  /** The answer to a request; `problem` is the error. */
  | {
      readonly kind: "answer";
      readonly id: number;
      readonly value: unknown;
      readonly problem: string | undefined;
    }
  | { readonly kind: "log"; readonly text: string }
  /** A plugin asks the same plugin in the leader, by the key of its channel. Answered with `reply`. */
  | {
      readonly kind: "ask";
      readonly id: number;
      readonly generation: number;
      readonly key: string;
      readonly question: unknown;
    }
  /** A plugin requires the process to end. */
  | { readonly kind: "fatal"; readonly message: string };

/** The answer to `stop`. */
export interface LastWords {
  readonly failedHooks: number;
  /** The final counters. */
  readonly metrics: readonly MetricSnapshot[];
}
