/** dnsmasq's statistics, as TXT records of class CHAOS (docs/spec/kube-dns.md#dnsmasq). */
import { Rcode, RecordClass } from "../../dns/numbers.ts";
import { TXT } from "../../dns/record-table.ts";
import { RecordType } from "../../dns/type-names.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { version } from "../../lib/text/version.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import { definePlugin, type PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type { Reply } from "../../plugin/query/reply.ts";
import { authorityHolds } from "../../plugin/query/response-type.ts";

/** Directives of this command. */
export const STATISTICS = "dnsmasq_statistics";
export const FORWARDED = "dnsmasq_forwarded";

/** Answers that are of no use to the client. */
const ERRORS: ReadonlySet<string> = new Set(["SERVFAIL", "REFUSED", "NOTIMP", "FORMERR"]);

type LabelFilter = (label: (name: string) => string) => boolean;

/** The subject of the statistics. */
export interface Described {
  /** As on the command line; 0 for no cache. */
  readonly cacheSize: number;
  readonly keepsDenials: boolean;
  /** `ADDRESS:PORT`, as upstreams appear in metrics. */
  readonly servers: readonly string[];
}

export class Statistics {
  described: Described = { cacheSize: 0, keepsDenials: false, servers: [] };
  readonly #metrics: MetricsRegistry;
  #asked = 0;
  #forwarded = 0;
  #insertions = 0;

  constructor(metrics: MetricsRegistry) {
    this.#metrics = metrics;
  }

  /** Runs before everything else: counts queries, and answers those of class CHAOS. */
  readonly front: PluginDefinition<unknown> = definePlugin({
    name: STATISTICS,
    summary: "Answers queries for dnsmasq's statistics.",
    config: bareDirective(),
    allClasses: true,
    create: () => ({
      handle: (query, next) => {
        this.#asked++;
        return query.class === RecordClass.CH ? this.#tell(query) : next(query);
      },
    }),
  });

  /** Runs directly before `forward`: queries that arrive here are forwarded. */
  readonly forwarded: PluginDefinition<unknown> = definePlugin({
    name: FORWARDED,
    summary: "Counts forwarded queries.",
    config: bareDirective(),
    create: () => {
      const count = (outcome: Outcome): Outcome => {
        if (outcome.kind === "reply" && this.#isKept(outcome)) this.#insertions++;
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

  #isKept({ rcode, truncated, sections }: Reply): boolean {
    const { cacheSize, keepsDenials } = this.described;
    if (cacheSize === 0 || truncated || sections.minimalTtl(1) === 0) return false;
    if (rcode === Rcode.NOERROR && sections.answerCount > 0) return true;
    const isDenial = rcode === Rcode.NOERROR || rcode === Rcode.NXDOMAIN;
    return isDenial && keepsDenials && authorityHolds(sections, RecordType.SOA);
  }

  #tell(query: Query): Outcome {
    const texts =
      query.type === RecordType.TXT ? this.#texts(query.name.toLowerCase().toString()) : undefined;
    if (texts === undefined) return query.reply({ rcode: Rcode.NOTIMP, recursionAvailable: true });
    const records = texts.map((strings) => ({
      ...TXT.create(query.name, 0, { strings: strings.map((text) => new TextEncoder().encode(text)) }),
      class: RecordClass.CH,
    }));
    return query.reply({ authoritative: true, recursionAvailable: true, answer: records });
  }

  /** The strings of each record. */
  #texts(name: string): string[][] | undefined {
    switch (name) {
      case "version.bind.":
        return [[`Portolan-${version}`]];
      case "authors.bind.":
      case "copyright.bind.":
        return [["Portolan authors"]];
      case "cachesize.bind.":
        return [[String(this.described.cacheSize)]];
      case "insertions.bind.":
        return [[String(this.#insertions)]];
      case "evictions.bind.":
        return [[String(this.#evictions())]];
      case "misses.bind.":
        return [[String(this.#forwarded)]];
      case "hits.bind.":
        // This query is also answered locally. It counts from the next query on.
        return [[String(this.#hits() - 1)]];
      case "auth.bind.":
        return [["0"]];
      case "servers.bind.":
        return [
          this.described.servers.map((server) => {
            const { sent, failed } = this.#exchanges(server);
            return `${server.replace(/:(\d+)$/, "#$1").replaceAll(/[[\]]/g, "")} ${sent} ${failed}`;
          }),
        ];
      default:
        return undefined;
    }
  }

  /** For the log. */
  lines(): string[] {
    const { cacheSize, servers } = this.described;
    return [
      `cache size ${cacheSize}, ${this.#evictions()}/${this.#insertions} cache insertions re-used unexpired cache entries.`,
      `queries forwarded ${this.#forwarded}, queries answered locally ${this.#hits()}`,
      ...servers.map((server) => {
        const { sent, failed } = this.#exchanges(server);
        const name = server.replace(/:(\d+)$/, "#$1").replaceAll(/[[\]]/g, "");
        return `server ${name}: queries sent ${sent}, retried or failed ${failed}`;
      }),
    ];
  }

  /** A query that is forwarded again after a failure counts as forwarded twice. */
  #hits(): number {
    return Math.max(0, this.#asked - this.#forwarded);
  }

  #evictions(): number {
    return this.#sum("coredns_cache_evictions_total", () => true);
  }

  /** Queries sent to one server, and those without an answer or with an error. */
  #exchanges(server: string): { readonly sent: number; readonly failed: number } {
    const isTo: LabelFilter = (label) => label("to") === server;
    const sent =
      this.#sum("coredns_proxy_conn_cache_hits_total", isTo) +
      this.#sum("coredns_proxy_conn_cache_misses_total", isTo);
    const answered = this.#sum(
      "coredns_proxy_request_duration_seconds",
      (label) => isTo(label) && !ERRORS.has(label("rcode")),
    );
    return { sent, failed: Math.max(0, sent - answered) };
  }

  /** The number of observations of a histogram. */
  #sum(name: string, counts: LabelFilter): number {
    let sum = 0;
    for (const family of this.#metrics.snapshot()) {
      if (family.name !== name) continue;
      for (const { labelValues, numbers } of family.series) {
        if (!counts((label) => labelValues[family.labels.indexOf(label)] ?? "")) continue;
        const counted = family.type === "histogram" ? numbers.subarray(0, -1) : numbers;
        for (const number of counted) sum += number;
      }
    }
    return sum;
  }
}
