/**
 * Errors of added plugins outside of any query: an unhandled rejection, or an exception in a timer's callback. Node
 * would end the process, and with it the answers of all other plugins. An error of the program itself still ends it,
 * because its state is unknown then.
 */

import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { programFile } from "../../lib/files/program-files.ts";
import type { Logger } from "../../lib/logging/log.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { PLUGIN_PANICS } from "../isolation/isolation.ts";
import type { LoadedFile } from "./plugin-registry.ts";

/** The label `plugin` for an error whose stack names no file. */
const NAMELESS = "unknown";

/** The process, or one thread of it. */
export interface FaultSource {
  on(event: "uncaughtException", listener: (error: unknown) => void): unknown;
}

export interface StrayFaultOptions {
  /** The files of added plugins that are loaded so far. */
  readonly loaded: () => readonly LoadedFile[];
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** Called for the program's own errors. Must end the process or thread of `source`. */
  readonly end: (error: unknown) => void;
}

/** From now on errors of added plugins are logged and counted under the plugin's name. */
export function catchStrayFaults(source: FaultSource, options: StrayFaultOptions): void {
  source.on("uncaughtException", (error) => {
    const plugin = blamedPlugin(error, options.loaded());
    if (plugin === undefined) {
      options.end(error);
      return;
    }
    options.metrics.counter(PLUGIN_PANICS).slot(plugin).increment();
    const who = plugin === NAMELESS ? "an added plugin" : `plugin/${plugin}`;
    options.log.child(who).error(`failed outside a query: ${faultText(error)}`);
  });
}

/**
 * The plugin whose file the stack names, or {@link NAMELESS} if the stack names no file of the program.
 * @returns `undefined` for the program's own errors
 */
export function blamedPlugin(error: unknown, loaded: readonly LoadedFile[]): string | undefined {
  if (loaded.length === 0) return undefined;
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const frames = [...stack.matchAll(/file:\/\/[^\s?)]+/g)].map(([url]) => url.replace(/(:\d+){1,2}$/, ""));
  const owner = loaded.find(({ file }) => frames.includes(urlOf(file)));
  if (owner !== undefined) return owner.plugin;
  return frames.some((url) => url.startsWith(programFile("").href)) ? undefined : NAMELESS;
}

/** As in stacks: the module loader resolves symbolic links, which files of a ConfigMap are. */
function urlOf(file: string): string {
  try {
    return pathToFileURL(realpathSync(file)).href;
  } catch {
    return pathToFileURL(file).href;
  }
}

function faultText(error: unknown): string {
  const text = messageOf(error);
  // Node wraps a rejection that is not an Error in a long sentence.
  const [, reason] = /promise rejected with the reason "(.*)"/s.exec(text) ?? [];
  return (reason === undefined ? text : `a promise was rejected with ${reason}`).replaceAll(/\s*\n\s*/g, " ");
}
