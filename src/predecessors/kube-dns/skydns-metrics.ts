/** The metrics of SkyDNS inside of kube-dns (docs/spec/kube-dns.md#metrics). */
import { Flag, Rcode } from "../../dns/numbers.ts";
import type { CounterFamily, HistogramFamily } from "../../lib/metrics/metric-families.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { MessageSeal } from "../../plugin/message/message-seal.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";

/** The answering component: the cluster's own zone, its reverse zones, upstream name servers, servers of a stub domain. */
export type System = "auth" | "reverse" | "recursive" | "stub";
const SYSTEMS = ["auth", "cache", "recursive", "reverse", "stub"] as const;

const DURATIONS = [0.001, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZES = [0, 512, 1024, 1500, 2048, ...Array.from({ length: 16 }, (_, index) => (index + 1) * 4096)];

export class SkydnsMetrics {
  readonly #requests: CounterFamily;
  readonly #durations: HistogramFamily;
  readonly #sizes: HistogramFamily;
  readonly #errors: CounterFamily;

  /** @param prefix such as `skydns_skydns` */
  constructor(registry: MetricsRegistry, prefix: string) {
    this.#requests = registry.counter({
      name: `${prefix}_dns_request_count_total`,
      help: "Queries, by component.",
      labels: ["system"],
    });
    this.#durations = registry.histogram({
      name: `${prefix}_dns_request_duration_seconds`,
      help: "Time until the answer in seconds, by component.",
      labels: ["system"],
      buckets: DURATIONS,
    });
    this.#sizes = registry.histogram({
      name: `${prefix}_dns_response_size_bytes`,
      help: "Size of answers in bytes, by component.",
      labels: ["system"],
      buckets: SIZES,
    });
    this.#errors = registry.counter({
      name: `${prefix}_dns_error_count_total`,
      help: "Failed answers, by component and error.",
      labels: ["system", "cause"],
    });
    const misses = registry.counter({
      name: `${prefix}_dns_cachemiss_count_total`,
      help: "Always 0: kube-dns cached no answers.",
      labels: ["cache"],
    });
    for (const system of SYSTEMS) this.#requests.slot(system);
    for (const cache of ["response", "signature"]) misses.slot(cache);
  }

  asked(system: System): void {
    this.#requests.slot(system).increment();
  }

  /** Observes the size of the answer. */
  sizeSeal(system: System): MessageSeal {
    return {
      room: 0,
      seal: (_bytes, length) => {
        this.#sizes.slot(system).observe(length);
        return length;
      },
    };
  }

  /** @param duration milliseconds */
  answered(system: System, outcome: Outcome, duration: number): void {
    this.#durations.slot(system).observe(duration / 1000);
    const cause = causeOf(outcome);
    if (cause !== undefined) this.#errors.slot(system, cause).increment();
  }
}

function causeOf(outcome: Outcome): string | undefined {
  if (outcome.kind !== "reply" && outcome.kind !== "failed") return undefined;
  switch (outcome.rcode) {
    case Rcode.NXDOMAIN:
      return "nxdomain";
    case Rcode.REFUSED:
      return "refused";
    case Rcode.SERVFAIL:
      return "servfail";
    default:
      return outcome.kind === "reply" && (outcome.flags & Flag.TC) !== 0 ? "truncated" : undefined;
  }
}
