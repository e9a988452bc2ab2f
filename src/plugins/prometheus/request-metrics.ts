/**
 * Metrics of queries and replies. Slots are looked up once and stored by number, so that counting a query takes a few
 * array accesses and builds no labels.
 */
import { RecordType, rcodeName } from "../../dns/index.ts";
import { octetAt } from "../../dns/octets.ts";
import { DURATION_BUCKETS, type HistogramFamily, SIZE_BUCKETS } from "../../lib/metrics/metric-families.ts";
import type { CounterFamily, CounterSlot, HistogramSlot, MetricsRegistry } from "../../plugin/index.ts";
import type { RepeatedQuery } from "../../plugin/query/repetition.ts";

/** Values of the label `type`; index 0 is for all other types. */
const TYPE_LABELS = [
  "other",
  "A",
  "AAAA",
  "CNAME",
  "DNSKEY",
  "DS",
  "MX",
  "NSEC",
  "NSEC3",
  "NS",
  "PTR",
  "RRSIG",
  "SOA",
  "SRV",
  "TXT",
  "HTTPS",
  "SVCB",
  "IXFR",
  "AXFR",
  "ANY",
] as const;

/** Index in {@link TYPE_LABELS} by record type. */
const TYPE_PLACES: Uint8Array = placesOfTypes();

/** Rcodes with a stored slot; higher ones are rare. */
const KEPT_RCODES = 32;

/** Used as rcode of a dropped query. */
export const NO_REPLY = -1;

const PROTOCOLS = ["udp", "tcp"] as const;

export class RequestMetrics {
  readonly requests: CounterFamily;
  readonly durations: HistogramFamily;
  readonly requestSizes: HistogramFamily;
  readonly dnssecOk: CounterFamily;
  readonly responseSizes: HistogramFamily;
  readonly responses: CounterFamily;
  readonly #recorders = new Map<string, Map<string, Map<string, RequestRecorder>>>();

  constructor(registry: MetricsRegistry) {
    const place = ["server", "zone", "view"];
    this.requests = registry.counter({
      name: "coredns_dns_requests_total",
      help: "Queries received.",
      labels: [...place, "proto", "family", "type"],
    });
    this.durations = registry.histogram({
      name: "coredns_dns_request_duration_seconds",
      help: "Time from the arrival of a query to its answer, in seconds.",
      labels: place,
      buckets: DURATION_BUCKETS,
    });
    this.requestSizes = registry.histogram({
      name: "coredns_dns_request_size_bytes",
      help: "Size of queries, in bytes.",
      labels: [...place, "proto"],
      buckets: SIZE_BUCKETS,
    });
    this.dnssecOk = registry.counter({
      name: "coredns_dns_do_requests_total",
      help: "Queries with the DO bit set.",
      labels: place,
    });
    this.responseSizes = registry.histogram({
      name: "coredns_dns_response_size_bytes",
      help: "Size of replies before truncation, in bytes.",
      labels: [...place, "proto"],
      buckets: SIZE_BUCKETS,
    });
    this.responses = registry.counter({
      name: "coredns_dns_responses_total",
      help: "Replies by rcode and by the plugin that answered.",
      labels: [...place, "rcode", "plugin"],
    });
  }

  /** Listeners, zones and views come from the configuration, so there are few. */
  recorder(server: string, zone: string, view: string): RequestRecorder {
    const zones = entryOf(this.#recorders, server, () => new Map<string, Map<string, RequestRecorder>>());
    const views = entryOf(zones, zone, () => new Map<string, RequestRecorder>());
    return entryOf(views, view, () => new RequestRecorder(this, server, zone, view));
  }
}

/** The series of one listener, zone and view; each appears with its first query. */
export class RequestRecorder {
  readonly server: string;
  readonly zone: string;
  readonly view: string;
  readonly #metrics: RequestMetrics;
  readonly #requests: (CounterSlot | undefined)[] = new Array(4 * TYPE_LABELS.length).fill(undefined);
  readonly #requestSizes: (HistogramSlot | undefined)[] = [undefined, undefined];
  readonly #responseSizes: (HistogramSlot | undefined)[] = [undefined, undefined];
  readonly #responsesOfPlugins = new Map<string, (CounterSlot | undefined)[]>();
  #durations: HistogramSlot | undefined;
  #dnssecOk: CounterSlot | undefined;
  #lastPlugin: string | undefined;
  #lastResponses: (CounterSlot | undefined)[] = [];
  /** Queries answered at once whose durations are still to be recorded: see {@link AnsweredTogether}. */
  untimed = 0;
  #waiting: { readonly traceId: string; readonly wallTime: number } | undefined;

  constructor(metrics: RequestMetrics, server: string, zone: string, view: string) {
    this.#metrics = metrics;
    this.server = server;
    this.zone = zone;
    this.view = view;
  }

  /** @param duration milliseconds from the arrival of a query to its answer @param count number of such queries */
  recordDuration(duration: number, count = 1): void {
    (this.#durations ?? this.#openDurations()).observe(duration / 1000, count);
  }

  /** Attaches a trace as exemplar to such durations. @param wallTime milliseconds since 1970 */
  exemplify(duration: number, traceId: string, wallTime: number): void {
    const exemplar = { traceId, value: duration / 1000, at: wallTime / 1000 };
    (this.#durations ?? this.#openDurations()).exemplify(exemplar);
  }

  /** Like {@link exemplify}, for a query whose duration is recorded later: see {@link exemplifyWaiting}. */
  exemplifyLater(traceId: string, wallTime: number): void {
    this.#waiting = { traceId, wallTime };
  }

  /** Sets the duration of the queries that were {@link untimed}. */
  exemplifyWaiting(duration: number): void {
    if (this.#waiting === undefined) return;
    const { traceId, wallTime } = this.#waiting;
    this.#waiting = undefined;
    this.exemplify(duration, traceId, wallTime);
  }

  /**
   * Counts a finished query. @param rcode of the reply, `NO_REPLY` without one @param plugin the plugin that answered
   * or failed @param size of the reply in bytes @param times number of such queries
   */
  record(query: RepeatedQuery, rcode: number, plugin: string, size: number, times = 1): void {
    const protocol = query.overStream ? 1 : 0;
    const family = query.client.family === 4 ? 0 : 1;
    const type = query.type < TYPE_PLACES.length ? octetAt(TYPE_PLACES, query.type) : 0;
    const place = (protocol * 2 + family) * TYPE_LABELS.length + type;
    (this.#requests[place] ?? this.#openRequests(place, protocol, family, type)).add(times);
    (this.#requestSizes[protocol] ?? this.#openRequestSizes(protocol)).observe(query.length, times);
    if (query.dnssecOk) (this.#dnssecOk ?? this.#openDnssecOk()).add(times);
    if (rcode === NO_REPLY) return;
    (this.#responseSizes[protocol] ?? this.#openResponseSizes(protocol)).observe(size, times);
    if (plugin !== this.#lastPlugin) this.#turnTo(plugin);
    (this.#lastResponses[rcode] ?? this.#openResponses(rcode, plugin)).add(times);
  }

  #turnTo(plugin: string): void {
    this.#lastResponses = entryOf(this.#responsesOfPlugins, plugin, () =>
      new Array(KEPT_RCODES).fill(undefined),
    );
    this.#lastPlugin = plugin;
  }

  #openDurations(): HistogramSlot {
    this.#durations = this.#metrics.durations.slot(this.server, this.zone, this.view);
    return this.#durations;
  }

  #openDnssecOk(): CounterSlot {
    this.#dnssecOk = this.#metrics.dnssecOk.slot(this.server, this.zone, this.view);
    return this.#dnssecOk;
  }

  #openRequests(place: number, protocol: number, family: number, type: number): CounterSlot {
    const slot = this.#metrics.requests.slot(
      ...[this.server, this.zone, this.view],
      PROTOCOLS[protocol] ?? "",
      String(family + 1),
      TYPE_LABELS[type] ?? "other",
    );
    this.#requests[place] = slot;
    return slot;
  }

  #openRequestSizes(protocol: number): HistogramSlot {
    const labels = [this.server, this.zone, this.view, PROTOCOLS[protocol] ?? ""];
    const slot = this.#metrics.requestSizes.slot(...labels);
    this.#requestSizes[protocol] = slot;
    return slot;
  }

  #openResponseSizes(protocol: number): HistogramSlot {
    const labels = [this.server, this.zone, this.view, PROTOCOLS[protocol] ?? ""];
    const slot = this.#metrics.responseSizes.slot(...labels);
    this.#responseSizes[protocol] = slot;
    return slot;
  }

  #openResponses(rcode: number, plugin: string): CounterSlot {
    const labels = [this.server, this.zone, this.view, rcodeName(rcode), plugin];
    const slot = this.#metrics.responses.slot(...labels);
    if (rcode < KEPT_RCODES) this.#lastResponses[rcode] = slot;
    return slot;
  }
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}

function placesOfTypes(): Uint8Array {
  const places = new Uint8Array(256);
  for (const [place, label] of TYPE_LABELS.entries())
    if (label !== "other") places[RecordType[label]] = place;
  return places;
}
