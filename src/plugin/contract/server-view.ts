/** What is in force in a running server, as plain values: for the console and whoever else shows it. */
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
  /** Where the first key stands. */
  readonly place: PlaceView;
  /** Listeners (`dns://:53`). */
  readonly listeners: readonly string[];
  /** Names of the plugins in the order in which they see a query, and whether they do. */
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
  /** The Corefile as it was read; what it imports is not in it. */
  readonly text: string;
  readonly sha512: string;
  /** Milliseconds of the Unix epoch at which it came into force. */
  readonly inForceSince: number;
  readonly warnings: readonly DiagnosticView[];
  /** The last Corefile that was not put into force, if that came after the one that is. */
  readonly refused: RefusalView | undefined;
}

/** What the log says behind a refused reload: which configuration goes on. */
export function staysInForce({ inForceSince }: Pick<ConfigurationView, "inForceSince">): string {
  const since = new Date(inForceSince).toISOString().replace(/\.\d+Z$/, "Z");
  return `the configuration in force since ${since} stays in force`;
}

export interface RefusalView {
  /** Milliseconds of the Unix epoch. */
  readonly at: number;
  readonly reason: string;
  /** Where the reason can be told by places in the file. */
  readonly diagnostics: readonly DiagnosticView[];
}
