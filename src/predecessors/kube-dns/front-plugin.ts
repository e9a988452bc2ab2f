/** Handles the queries that kube-dns answers outside of its zones. Runs before every chain. */
import type { Name } from "../../dns/name.ts";
import { Rcode, RecordClass } from "../../dns/numbers.ts";
import { CLUSTER } from "../../kubernetes/answers/cluster-service.ts";
import type { ClusterView } from "../../kubernetes/answers/cluster-view.ts";
import { isReverseZone } from "../../kubernetes/answers/cluster-zone.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Next } from "../../plugin/chain/handler.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import { definePlugin, type PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Federation } from "./federation.ts";
import type { SkydnsMetrics, System } from "./skydns-metrics.ts";

export interface FrontOptions {
  readonly domain: Name;
  readonly clock: Clock;
  readonly federation: Federation;
  /** Absent if metrics are off. */
  readonly metrics: SkydnsMetrics | undefined;
  /** Whether everything in the cluster has been listed once. */
  readonly isSynced: () => boolean;
  /** Called with the cluster of each new configuration. */
  readonly found: (view: ClusterView) => void;
}

/** Name of the directive in the Corefiles of this command. */
export const FRONT = "kubedns";

/** Names outside of the cluster with fewer labels are not forwarded. */
const MIN_LABELS = 2;

export function frontPlugin(options: FrontOptions): PluginDefinition<unknown> {
  return definePlugin({
    name: FRONT,
    summary: "Refuses queries until the cluster is listed, and answers for federations.",
    config: bareDirective(),
    create: (_config, site) => ({
      start() {
        for (const { view } of CLUSTER.among(site.block.plugins())) options.found(view);
      },
      handle: (query, next) => {
        const isStub = !site.block.zones.some((zone) => zone.isRoot);
        return options.metrics === undefined
          ? route(options, query, next, isStub)
          : measured(options, options.metrics, query, next, isStub);
      },
    }),
  });
}

function route(options: FrontOptions, query: Query, next: Next, isStub: boolean): Outcome | Promise<Outcome> {
  if (query.class !== RecordClass.IN) return next(query);
  if (!options.isSynced()) return query.fail(Rcode.REFUSED);
  if (isStub) return next(query);
  const federated = options.federation.handle(query, next);
  if (federated !== undefined) return federated;
  const { name } = query;
  if (name.labelCount < MIN_LABELS && !name.isAtOrBelow(options.domain)) return query.fail(Rcode.SERVFAIL);
  return next(query);
}

function measured(
  options: FrontOptions,
  metrics: SkydnsMetrics,
  query: Query,
  next: Next,
  isStub: boolean,
): Outcome | Promise<Outcome> {
  const system = isStub ? "stub" : systemOf(query.name, options.domain);
  const start = options.clock.now();
  metrics.asked(system);
  query.addSeal(metrics.sizeSeal(system));
  const after = (outcome: Outcome): Outcome => {
    metrics.answered(system, outcome, options.clock.now() - start);
    return outcome;
  };
  const outcome = route(options, query, next, isStub);
  return outcome instanceof Promise ? outcome.then(after) : after(outcome);
}

function systemOf(name: Name, domain: Name): System {
  if (name.isAtOrBelow(domain)) return "auth";
  return isReverseZone(name) ? "reverse" : "recursive";
}
