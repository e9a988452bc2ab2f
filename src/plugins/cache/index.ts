/** `cache`: stores answers for as long as their TTLs allow. */

import { definePlugin } from "../../plugin/index.ts";
import { CACHE } from "../../plugin/services/cache-view.ts";
import type { SharedAnswers } from "./answer-store.ts";
import { cacheDirective } from "./directive.ts";
import { CacheHandler } from "./handler.ts";
import { rehearse } from "./rehearsal.ts";
import { settingsOf, unmetWishes } from "./settings.ts";
import { ShownCache } from "./view.ts";

export default definePlugin({
  name: "cache",
  summary: "Caches responses until they expire.",
  config: cacheDirective,
  create(config, site) {
    const settings = settingsOf(config, site.machine.memoryLimit);
    const cache = new CacheHandler(settings, site);
    const { machine, feed } = site;
    cache.store.growOnlyWhile(() => machine.isMemoryTight?.() !== true);
    if (feed.role === "leader")
      for (const line of unmetWishes(config, settings, machine.memoryLimit)) site.log.warning(line);
    const zones = settings.zones.toString().split(",");
    let isFirst = true;
    // One cache for the data planes of all threads: an answer stored by one thread serves all.
    feed.provide(() => [cache.share()]);
    feed.receive((message) => cache.join(message as SharedAnswers));
    return {
      handle: (query, next) => cache.handle(query, next),
      services: [CACHE.offer(new ShownCache(cache, zones, site.clock))],
      inherit: () => {
        isFirst = false;
      },
      start: () => {
        if (isFirst) rehearse(settings, site);
      },
      forget: (names) => void cache.drop(names),
      stop: () => cache.stop(),
    };
  },
});
