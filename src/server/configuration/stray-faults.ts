/**
 * Faults of added plugins that belong to no query: a promise that nobody waits for rejects, a timer's callback throws. Node would end the
 * process, and with it the answers of everybody else. A fault of the program itself still does that: nobody knows what it left behind.
 */

import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { programFile } from "../../lib/files/program-files.ts";
import type { Logger } from "../../lib/logging/log.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { PLUGIN_PANICS } from "../isolation/isolation.ts";
import type { LoadedFile } from "./plugin-registry.ts";

/** For the label `plugin` where a fault says nothing of where it comes from. */
const NAMELESS = "unknown";

/** The process, or one thread of it. */
export interface FaultSource {
  on(event: "uncaughtException", listener: (error: unknown) => void): unknown;
}

export interface StrayFaultOptions {
  /** The files of added plugins that are loaded by now. */
  readonly loaded: () => readonly LoadedFile[];
  readonly log: Logger;
  readonly metrics: MetricsRegistry;
  /** The fault is the program's own. Has to end what `source` is. */
  readonly end: (error: unknown) => void;
}

/** From now on faults of added plugins are logged and counted with the plugin's name. */
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
 * The plugin whose file the fault came through, or {@link NAMELESS} for one that came through no file of the program.
 * @returns `undefined` for the program's own faults
 */
export function blamedPlugin(error: unknown, loaded: readonly LoadedFile[]): string | undefined {
  if (loaded.length === 0) return undefined;
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const frames = [...stack.matchAll(/file:\/\/[^\s?)]+/g)].map(([url]) => url.replace(/(:\d+){1,2}$/, ""));
  const owner = loaded.find(({ file }) => frames.includes(urlOf(file)));
  if (owner !== undefined) return owner.plugin;
  return frames.some((url) => url.startsWith(programFile("").href)) ? undefined : NAMELESS;
}

/** As stacks have it: the module loader follows links, which is what files of a ConfigMap are. */
function urlOf(file: string): string {
  try {
    return pathToFileURL(realpathSync(file)).href;
  } catch {
    return pathToFileURL(file).href;
  }
}

function faultText(error: unknown): string {
  const text = messageOf(error);
  // Node's words for what is no error are long.
  const [, reason] = /promise rejected with the reason "(.*)"/s.exec(text) ?? [];
  return (reason === undefined ? text : `a promise was rejected with ${reason}`).replaceAll(/\s*\n\s*/g, " ");
}
