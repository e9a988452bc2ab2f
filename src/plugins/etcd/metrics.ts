import type { KeyMirror } from "../../etcd/mirror/key-mirror.ts";
import type { Clock, CounterSlot, GaugeSlot, MetricsRegistry, Timer, ZoneList } from "../../plugin/index.ts";

/** Milliseconds between two updates of the gauges. */
const INTERVAL = 1_000;

/** The counters of one directive, by its first zone. */
export class EtcdMetrics {
  readonly stale: CounterSlot;
  readonly malformed: CounterSlot;
  readonly readThrough: CounterSlot;
  readonly #keys: GaugeSlot;
  readonly #octets: GaugeSlot;
  readonly #watching: GaugeSlot;
  #timer: Timer | undefined;

  constructor(registry: MetricsRegistry, zones: ZoneList) {
    const zone = zones.zones[0]?.toLowerCase().toString() ?? ".";
    const counter = (name: string, help: string): CounterSlot =>
      registry.counter({ name, help, labels: ["zone"] }).slot(zone);
    const gauge = (name: string, help: string): GaugeSlot =>
      registry.gauge({ name, help, labels: ["zone"] }).slot(zone);
    this.stale = counter(
      "portolan_etcd_stale_answers_total",
      "Answers with a key whose lease was over while etcd was away.",
    );
    this.malformed = counter(
      "portolan_etcd_malformed_values_total",
      "Values from etcd that are not the JSON of SkyDNS.",
    );
    this.readThrough = counter("portolan_etcd_reads_total", "Reads from etcd on behalf of queries.");
    this.#keys = gauge("portolan_etcd_keys", "Keys of etcd mirrored in memory.");
    this.#octets = gauge("portolan_etcd_index_octets", "Memory used by mirrored etcd keys, in bytes.");
    this.#watching = gauge("portolan_etcd_watching", "1 while changes of etcd arrive, 0 while it is away.");
  }

  follow(mirror: KeyMirror, clock: Clock): void {
    const look = (): void => {
      this.#keys.set(mirror.tree.size);
      this.#octets.set(mirror.tree.octets);
      this.#watching.set(mirror.state === "watching" ? 1 : 0);
    };
    look();
    this.#timer = clock.every(INTERVAL, look);
  }

  stop(): void {
    this.#timer?.cancel();
  }
}
