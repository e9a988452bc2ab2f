/** The plugins of the block after the one that serves zones. */
import type { Name } from "../../dns/name.ts";
import { isInChain, type PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { Site } from "../../plugin/contract/site.ts";

export class LaterPlugins {
  readonly #self: PluginInstance;
  readonly #site: Site;
  #handlers: readonly PluginInstance[] | undefined;
  #isPlaced = false;

  constructor(self: PluginInstance, site: Site) {
    this.#self = self;
    this.#site = site;
  }

  /** Whether no later plugin could answer. */
  get isEmpty(): boolean {
    return this.#all.length === 0 && this.#isPlaced;
  }

  /** Whether one of them serves a zone above this one. */
  haveParentOf(apex: Name): boolean {
    return this.#all.some(({ transferSource }) =>
      transferSource?.transferZones.some((zone) => !zone.equals(apex) && apex.isAtOrBelow(zone)),
    );
  }

  /** Known once all plugins of the block are made. */
  get #all(): readonly PluginInstance[] {
    this.#handlers ??= this.#find();
    return this.#handlers;
  }

  #find(): readonly PluginInstance[] {
    const plugins = this.#site.block.plugins();
    const own = plugins.findIndex(({ instance }) => instance === this.#self);
    this.#isPlaced = own >= 0;
    return plugins
      .slice(own + 1)
      .map(({ instance }) => instance)
      .filter(isInChain);
  }
}
