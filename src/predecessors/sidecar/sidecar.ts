/** kube-dns's sidecar: probes DNS servers, reports the results, and exports dnsmasq's counters (docs/spec/kube-dns.md#sidecar). */

import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import { type AskOnce, askOnceWith } from "../ask-once.ts";
import { HttpPages, type Page } from "../http-pages.ts";
import { DnsmasqMetrics } from "./dnsmasq-metrics.ts";
import { SidecarProbe } from "./probe.ts";
import type { ProbeSpec } from "./probe-spec.ts";

export interface SidecarOptions {
  readonly dnsmasq: { readonly host: string; readonly port: number };
  /** Milliseconds. */
  readonly pollInterval: number;
  readonly probes: readonly ProbeSpec[];
  readonly host: string;
  readonly port: number;
  /** Path of the metrics. */
  readonly path: string;
  readonly namespace: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly ask?: AskOnce;
}

export class Sidecar {
  readonly metrics = new MetricsRegistry();
  readonly #options: SidecarOptions;
  readonly #probes: readonly SidecarProbe[];
  readonly #dnsmasq: DnsmasqMetrics;
  readonly #pages: HttpPages;

  constructor(options: SidecarOptions) {
    const { clock, random, namespace } = options;
    const ask = options.ask ?? askOnceWith(clock);
    const common = { metrics: this.metrics, namespace, clock, random, ask };
    this.#options = options;
    this.#probes = options.probes.map((spec) => new SidecarProbe({ ...common, spec }));
    this.#dnsmasq = new DnsmasqMetrics({
      ...common,
      server: options.dnsmasq,
      interval: options.pollInterval,
    });
    this.#pages = new HttpPages((path) => this.page(path));
  }

  /** @returns the port in use */
  async start(): Promise<number> {
    const port = await this.#pages.listen(this.#options.host, this.#options.port);
    for (const probe of this.#probes) probe.start();
    this.#dnsmasq.start();
    return port;
  }

  async stop(): Promise<void> {
    for (const probe of this.#probes) probe.stop();
    this.#dnsmasq.stop();
    await this.#pages.close();
  }

  async page(path: string): Promise<Page | undefined> {
    if (path === this.#options.path) {
      const { body, contentType } = await this.metrics.expose();
      return { status: 200, body, contentType };
    }
    if (path === "/healthz")
      return { status: 200, body: `ok (${new Date(this.#options.clock.wallTime()).toISOString()})\n` };
    return this.#probes.find((probe) => probe.path === path)?.page();
  }
}
