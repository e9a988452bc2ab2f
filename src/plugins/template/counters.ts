import type { CounterFamily, CounterSlot, MetricsRegistry } from "../../plugin/index.ts";

export type Section = "answer" | "additional" | "authority";

/** Metrics under the names that CoreDNS gives them. */
export class TemplateCounters {
  readonly #matches: CounterFamily;
  readonly #templateFailures: CounterFamily;
  readonly #recordFailures: CounterFamily;
  #last: CounterSlot | undefined;
  #lastLabels: readonly string[] = [];

  constructor(metrics: MetricsRegistry) {
    const labels = ["server", "zone", "view", "class", "type"];
    this.#matches = metrics.counter({
      name: "coredns_template_matches_total",
      help: "Counter of template regex matches.",
      labels,
    });
    const failureLabels = [...labels, "section", "template"];
    this.#templateFailures = metrics.counter({
      name: "coredns_template_template_failures_total",
      help: "Counter of go template failures.",
      labels: failureLabels,
    });
    this.#recordFailures = metrics.counter({
      name: "coredns_template_rr_failures_total",
      help: "Counter of mis-templated RRs.",
      labels: failureLabels,
    });
  }

  /** @param labels server, zone, view, class, type */
  matched(...labels: readonly string[]): void {
    const isSame = this.#lastLabels.length > 0 && labels.every((label, at) => label === this.#lastLabels[at]);
    if (!isSame) {
      this.#last = this.#matches.slot(...labels);
      this.#lastLabels = labels;
    }
    this.#last?.increment();
  }

  templateFailed(section: Section, template: string, labels: readonly string[]): void {
    this.#templateFailures.slot(...labels, section, template).increment();
  }

  recordFailed(section: Section, template: string, labels: readonly string[]): void {
    this.#recordFailures.slot(...labels, section, template).increment();
  }
}
