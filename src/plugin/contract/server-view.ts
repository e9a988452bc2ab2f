/** The state of a running server as plain values, for the console and other displays. */
import type { PlacedPlugin } from "./plugin-instance.ts";

export interface ServerView {
  /** Milliseconds of the Unix epoch at which the server began to listen. */
  readonly startedAt: number;
  /** Threads that answer. */
  readonly threads: number;
  /** Server blocks with their plugins that run on this thread, in the order of the Corefile. */
  blocks(): readonly BlockView[];
  configuration(): ConfigurationView;
}

export interface BlockView {
  /** `example.org.:53`. */
  readonly keys: readonly string[];
  /** The place of the first key. */
  readonly place: PlaceView;
  /** Listeners (`dns://:53`). */
  readonly listeners: readonly string[];
  /** Names of the plugins in the order in which they see a query, and whether they handle queries. */
  readonly chain: readonly { readonly name: string; readonly handles: boolean }[];
  readonly plugins: readonly PlacedPlugin[];
}

export interface PlaceView {
  readonly file: string;
  /** From 1 on. */
  readonly line: number;
  readonly column: number;
}

export interface DiagnosticView extends PlaceView {
  readonly code: string;
  readonly severity: string;
  readonly message: string;
}

export interface ConfigurationView {
  readonly file: string;
  /** The Corefile as it was read, without its imports. */
  readonly text: string;
  readonly sha512: string;
  /** Milliseconds of the Unix epoch at which it came into force. */
  readonly inForceSince: number;
  readonly warnings: readonly DiagnosticView[];
  /** The last refused Corefile, if it is newer than the one in force. */
  readonly refused: RefusalView | undefined;
}

/** The part of the log line after a refused reload that names the configuration in force. */
export function staysInForce({ inForceSince }: Pick<ConfigurationView, "inForceSince">): string {
  const since = new Date(inForceSince).toISOString().replace(/\.\d+Z$/, "Z");
  return `the configuration in force since ${since} stays in force`;
}

export interface RefusalView {
  /** Milliseconds of the Unix epoch. */
  readonly at: number;
  readonly reason: string;
  /** The errors that have places in the file. */
  readonly diagnostics: readonly DiagnosticView[];
}
