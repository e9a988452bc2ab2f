/** What the plugins of the configuration in force cannot do at present. */
import type { ServerControl } from "../plugin/contract/site.ts";
import type { NowView, TroubleRow } from "./api-types.ts";

/** A plugin may serve thousands of zones. */
const MOST_OF_PLUGIN = 20;
const MOST = 100;

export function troubleFacts({ view }: ServerControl): Pick<NowView, "notReady" | "troubles"> {
  const notReady = new Set<string>();
  const troubles: TroubleRow[] = [];
  const seen = new Set<string>();
  for (const { keys, plugins } of view?.blocks() ?? []) {
    for (const { name, instance } of plugins) {
      if (instance.unfit?.() === true || instance.ready?.() === false) notReady.add(name);
      for (const { subject, reason } of instance.faults?.().slice(0, MOST_OF_PLUGIN) ?? []) {
        // Two blocks may share a cluster or an upstream.
        const key = JSON.stringify([name, subject, reason]);
        if (seen.has(key) || troubles.length >= MOST) continue;
        seen.add(key);
        troubles.push({ plugin: name, block: keys.join(" "), subject, reason });
      }
    }
  }
  return { notReady: [...notReady].sort(), troubles };
}
