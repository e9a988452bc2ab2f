/** A first miss and a first hit before the first client's query: see `plugin/query/rehearsal.ts`. */
import { A } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { ChangingNames } from "../../plugin/contract/changing-names.ts";
import { type Query, Reply, type Site } from "../../plugin/index.ts";
import { rehearsalQuery } from "../../plugin/query/rehearsal.ts";
import { CacheHandler } from "./handler.ts";
import type { CacheSettings } from "./settings.ts";
import { effectiveCapacity, smallestMemory } from "./slab-bounds.ts";

const TTL = 60;

/** Uses a cache of its own that is dropped afterwards: nothing is stored or counted. */
export function rehearse(settings: CacheSettings, { clock, log }: Pick<Site, "clock" | "log">): void {
  const [zone] = settings.zones.zones;
  if (zone === undefined) return;
  const capacity = effectiveCapacity(1);
  const cache = new CacheHandler(
    {
      ...settings,
      success: { ...settings.success, capacity },
      denial: { ...settings.denial, capacity },
      memory: smallestMemory(capacity, capacity),
    },
    {
      ...{ clock, log, random: FIXED },
      metrics: new MetricsRegistry({ processMetrics: false }),
      changingNames: new ChangingNames(() => []),
    },
  );
  const answer = (query: Query): Reply =>
    query.reply({ answer: [A.create(query.name, TTL, { address: "127.0.0.1" })] });
  for (let time = 0; time < 2; time++) {
    const outcome = cache.handle(rehearsalQuery(zone, RecordType.A, clock.now()), answer);
    if (outcome instanceof Reply) outcome.release();
  }
}

const FIXED = { fraction: () => 0.5, unpredictable: () => 1 };
