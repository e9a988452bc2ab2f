/** dnsmasq's statistics, for who asks for TXT records of class CHAOS (kube-dns facts 6.1). */
import { RecordClass } from "../../dns/numbers.ts";
import { TXT } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { MetricsRegistry } from "../../lib/metrics.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import { definePlugin, type PluginDefinition } from "../../plugin/define-plugin.ts";
import type { Outcome } from "../../plugin/outcome.ts";

/** Directives of this command. */
export const STATISTICS = "dnsmasq_statistics";
export const FORWARDED = "dnsmasq_forwarded";

export class Statistics {
  cacheSize = 0;
  /** As `servers.bind` lists them. */
  servers: readonly string[] = [];
  readonly #metrics: MetricsRegistry;
  #asked = 0;
  #forwarded = 0;
  #insertions = 0;

  constructor(metrics: MetricsRegistry) {
    this.#metrics = metrics;
  }

  /** Stands in front of everything: counts queries, and answers for the statistics. */
  readonly front: PluginDefinition<unknown> = definePlugin({
    name: STATISTICS,
    summary: "Tells dnsmasq's statistics.",
    config: bareDirective(),
    allClasses: true,
    create: () => ({
      handle: (query, next) => {
        if (query.class !== RecordClass.CH) {
          this.#asked++;
          return next(query);
        }
        const texts =
          query.type === RecordType.TXT ? this.#texts(query.name.toLowerCase().toString()) : undefined;
        if (texts === undefined) return next(query);
        const strings = texts.map((text) => new TextEncoder().encode(text));
        const record = { ...TXT.create(query.name, 0, { strings }), class: RecordClass.CH };
        return query.reply({ authoritative: true, recursionAvailable: true, answer: [record] });
      },
    }),
  });

  /** Stands directly in front of `forward`: what comes here is asked for elsewhere. */
  readonly forwarded: PluginDefinition<unknown> = definePlugin({
    name: FORWARDED,
    summary: "Counts what is asked for elsewhere.",
    config: bareDirective(),
    create: () => {
      const count = (outcome: Outcome): Outcome => {
        if (outcome.kind === "reply" && outcome.answer.length > 0) this.#insertions += outcome.answer.length;
        return outcome;
      };
      return {
        handle: (query, next) => {
          this.#forwarded++;
          const outcome = next(query);
          return outcome instanceof Promise ? outcome.then(count) : count(outcome);
        },
      };
    },
  });

  #texts(name: string): readonly string[] | undefined {
    switch (name) {
      case "cachesize.bind.":
        return [String(this.cacheSize)];
      case "insertions.bind.":
        return [String(this.cacheSize === 0 ? 0 : this.#insertions)];
      case "evictions.bind.":
        return [String(this.#sum("coredns_cache_evictions_total"))];
      case "misses.bind.":
        return [String(this.#forwarded)];
      case "hits.bind.":
        return [String(this.#asked - this.#forwarded)];
      case "auth.bind.":
        return ["0"];
      case "servers.bind.":
        return this.servers.map((server) => {
          const queries = this.#sum("coredns_proxy_request_duration_seconds", server);
          const failures = this.#sum("coredns_proxy_healthcheck_failures_total", server);
          return `${server.replace(/:(\d+)$/, "#$1")} ${queries} ${failures}`;
        });
      default:
        return undefined;
    }
  }

  /** For the log. */
  lines(): string[] {
    const evictions = this.#sum("coredns_cache_evictions_total");
    return [
      `cache size ${this.cacheSize}, ${evictions}/${this.#insertions} cache insertions re-used unexpired cache entries.`,
      `queries forwarded ${this.#forwarded}, queries answered locally ${this.#asked - this.#forwarded}`,
    ];
  }

  /** Of a histogram how often something was observed. @param to of one upstream alone */
  #sum(name: string, to?: string): number {
    let sum = 0;
    for (const family of this.#metrics.snapshot()) {
      if (family.name !== name) continue;
      const place = family.labels.indexOf("to");
      for (const { labelValues, numbers } of family.series) {
        if (to !== undefined && labelValues[place] !== to) continue;
        const counted = family.type === "histogram" ? numbers.subarray(0, -1) : numbers;
        for (const number of counted) sum += number;
      }
    }
    return sum;
  }
}
