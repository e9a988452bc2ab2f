/** Makes the `Site` that each plugin instance gets. */

import type { Logger } from "../../lib/logging/log.ts";
import type { CounterSlot } from "../../lib/metrics/metric-slots.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { GuardedClock } from "../../lib/time/guarded-clock.ts";
import type { ChangingNames } from "../../plugin/contract/changing-names.ts";
import type { PlacedPlugin } from "../../plugin/contract/plugin-instance.ts";
import type { BlockSite, Feed, ListenerSite, Site } from "../../plugin/contract/site.ts";
import type { ConfiguredBlock } from "../configuration/configuration.ts";
import type { PlacedKey } from "../configuration/listen-places.ts";
import { PLUGIN_PANICS } from "../isolation/isolation.ts";

/** The members of a site that do not depend on the block and the plugin. */
export type SharedSite = Omit<
  Site,
  "plugin" | "block" | "log" | "resolvePath" | "shared" | "feed" | "changingNames"
>;

/** Shared by the instances of one configuration. */
export interface Common {
  readonly shared: Map<string, unknown>;
  readonly changingNames: ChangingNames;
}

export interface GenerationOptions {
  readonly site: SharedSite;
  /** The data plane of the instances: 0 is the leader, which has all plugins and listeners. */
  readonly plane: number;
  /** The feed of one instance; keys are the same in all data planes. */
  feed(key: string): Feed;
  readonly panics: CounterSlot;
  /** The address of a listener, `undefined` while it does not listen. */
  addressOf(label: string): { readonly host: string; readonly port: number } | undefined;
  /** Joins a path with a directory. */
  joinPath(directory: string, path: string): string;
}

/** A server block with the instances made so far. */
export interface SiteBlock {
  readonly configured: ConfiguredBlock;
  readonly listeners: readonly PlacedKey[];
  readonly placed: readonly PlacedPlugin[];
}

export function makeSite(
  plugin: string,
  block: SiteBlock,
  options: GenerationOptions,
  { shared, changingNames }: Common,
  feed: Feed,
): Site {
  const { settings, keys, zones } = block.configured;
  const blockSite: BlockSite = {
    keys,
    zones,
    settings,
    plugins: () => block.placed,
    listeners: () => block.listeners.map((placed) => listenerSite(placed, options)),
  };
  const log = options.site.processLog.child(`plugin/${plugin}`);
  return {
    ...options.site,
    clock: guardedClock(options.site, plugin, log),
    feed,
    plugin,
    block: blockSite,
    log,
    changingNames,
    resolvePath: (path) => options.joinPath(settings.root, path),
    shared: (key, make) => sharedObject(shared, `${plugin}/${key}`, make),
  };
}

/**
 * Timers belong to no query, so no link of the chain catches their errors. The clock refers to nothing of its
 * configuration, because a plugin may pass it on to its successor.
 */
function guardedClock({ clock, metrics }: SharedSite, plugin: string, log: Logger): GuardedClock {
  return new GuardedClock(clock, (error) => {
    metrics.counter(PLUGIN_PANICS).slot(plugin).increment();
    log.error(`failed outside a query: ${oneLine(error)}`);
  });
}

function sharedObject<T>(shared: Map<string, unknown>, key: string, make: () => T): T {
  // Each key belongs to one plugin, which always uses the same type.
  if (!shared.has(key)) shared.set(key, make());
  return shared.get(key) as T;
}

function listenerSite({ label, zone }: PlacedKey, options: GenerationOptions): ListenerSite {
  return { label, zone, address: () => options.addressOf(label) };
}

function oneLine(error: unknown): string {
  return messageOf(error).replaceAll(/\s*\n\s*/g, " ");
}
