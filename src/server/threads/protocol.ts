/** What the leader and its followers say to each other. Everything is copied by structured cloning. */
import type { LogFormatName } from "../../lib/logging/log-format.ts";
import type { MetricSnapshot } from "../../lib/metrics/metric-snapshot.ts";
import type { CorefileSource } from "../configuration/configuration.ts";
import type { PluginEntry } from "../configuration/plugin-registry.ts";
import type { ListenPlace } from "../run/point-sockets.ts";
import type { FeedMessage } from "./feed.ts";

/** What a follower is told when its thread starts. */
export interface FollowerSettings {
  /** Number of the data plane, from 1. */
  readonly plane: number;
  readonly plugins: readonly PluginEntry[];
  /** Milliseconds that external plugins have for a query; 0 for no bound. */
  readonly pluginBudget: number;
  readonly version: string;
  readonly defaultPort: number | undefined;
  readonly logFormat: LogFormatName;
}

/**
 * - `prepare`: read the Corefile, make and start its plugins. Refused when it is not what the leader has read.
 * - `listen`: open the sockets. What the leader's plugins know is complete by then.
 * - `commit`, `rollBack`: put what was prepared into force, or drop it.
 * - `echo`: answered once the plugins act on all messages that were sent before it.
 * - `measure`: say what was counted; answered with a list of {@link MetricSnapshot}.
 * - `stop`: answer what is under way, and close everything; answered with {@link LastWords}.
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
  /** The lines sent last are written: further ones may come. */
  | { readonly kind: "logged" }
  /** The answer to a question that a plugin asked: `problem` says why there is none. */
  | {
      readonly kind: "reply";
      readonly id: number;
      readonly value: unknown;
      readonly problem: string | undefined;
    }
  /** The last words have arrived: the thread may end. Before, a port that closes could take them with it. */
  | { readonly kind: "end" };

export type FromFollower =
  /** The answer to a request: `problem` says why it failed. */
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
  /** A plugin says that the process must not go on. */
  | { readonly kind: "fatal"; readonly message: string };

/** The answer to `stop`. */
export interface LastWords {
  readonly failedHooks: number;
  /** What it had counted in the end. */
  readonly metrics: readonly MetricSnapshot[];
}
