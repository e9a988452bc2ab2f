import {
  type AnswerWitness,
  afterwards,
  type Failure,
  type Handler,
  type Outcome,
  type PluginInstance,
  type Query,
  type Reply,
  type ReplyStream,
  type Site,
} from "../../plugin/index.ts";
import type { Repetition } from "../../plugin/query/repetition.ts";
import { LATENCY_EXEMPLARS, type LatencyExemplars } from "../../plugin/services/latency-exemplars.ts";
import { AnsweredTogether } from "./answered-together.ts";
import { MetricsEndpoint } from "./metrics-endpoint.ts";
import { NO_REPLY, RequestMetrics, type RequestRecorder } from "./request-metrics.ts";
import { WebIdentity } from "./web-identity.ts";
import { ZoneFinder } from "./zone-finder.ts";

/** Label `zone` of queries without a server block. */
const DROPPED_ZONE = "dropped";

/** State that the blocks of one configuration share. */
class SharedState {
  /** Addresses that serve the metrics. */
  readonly addresses: Set<string> = new Set();
  enabledListed = false;
}

export class Prometheus implements PluginInstance, LatencyExemplars, AnswerWitness {
  readonly services = [LATENCY_EXEMPLARS.offer(this)];
  readonly #address: string;
  readonly #site: Site;
  readonly #shared: SharedState;
  readonly #metrics: RequestMetrics;
  readonly #zones: ZoneFinder;
  readonly #answeredTogether: AnsweredTogether;
  readonly #forgetCollector: () => void;
  readonly #web: WebIdentity | undefined;
  readonly witness: AnswerWitness | undefined;
  #last: RequestRecorder;

  /** @param webConfig path of a web configuration file, for HTTPS */
  constructor(address: string, webConfig: string | undefined, site: Site) {
    this.#address = address;
    this.#web = webConfig === undefined ? undefined : new WebIdentity(site.resolvePath(webConfig), site);
    this.#site = site;
    this.#shared = site.shared("state", () => new SharedState());
    this.#metrics = new RequestMetrics(site.metrics);
    this.#zones = new ZoneFinder(site.block.zones);
    this.#last = this.#metrics.recorder("", ".", "");
    // With several zones the zone of each query would have to be looked up.
    this.witness = this.#zones.only === undefined ? undefined : this;
    this.#answeredTogether = new AnsweredTogether(site.clock);
    this.#forgetCollector = site.metrics.onCollect(() => this.#answeredTogether.close());
  }

  async start(): Promise<void> {
    const { metrics, http, log, version, machine } = this.#site;
    metrics
      .gauge({
        name: "coredns_build_info",
        help: "Always 1; the labels identify the program.",
        labels: ["version", "revision", "goversion"],
      })
      .slot(version, machine.environment.PORTOLAN_COMMIT ?? "unknown", `node${process.versions.node}`)
      .set(1);
    const { addresses } = this.#shared;
    if (addresses.has(this.#address) && this.#web === undefined) return;
    addresses.add(this.#address);
    const { handle } = new MetricsEndpoint(metrics, log);
    if (this.#web === undefined) {
      await http.serve(this.#address, "/metrics", handle);
      return;
    }
    await this.#web.load();
    const identity = this.#web.isEncrypted ? this.#web.holder : undefined;
    await http.serve(this.#address, "/metrics", this.#web.around(handle), identity);
    await this.#web.follow();
  }

  async examine(): Promise<void> {
    await this.#web?.load();
  }

  started(): void {
    const { block, metrics } = this.#site;
    const enabled = metrics.gauge({
      name: "coredns_plugin_enabled",
      help: "1 for each plugin in the chain of a server block with prometheus.",
      labels: ["server", "zone", "view", "name"],
    });
    if (!this.#shared.enabledListed) enabled.clear();
    this.#shared.enabledListed = true;
    const [zone] = block.zones;
    if (zone === undefined) return;
    for (const { label, zone: served } of block.listeners()) {
      if (!served.equals(zone)) continue;
      for (const { name, instance } of block.plugins())
        if (instance.handle !== undefined || instance.metadataZones !== undefined)
          enabled.slot(label, zone.toString(), "", name).set(1);
    }
  }

  stop(): void {
    this.#answeredTogether.close();
    this.#forgetCollector();
    this.#web?.stop();
  }

  keep(query: Query, duration: number, traceId: string): void {
    const recorder = this.#recorderOf(query);
    const wallTime = this.#site.clock.wallTime();
    // A query that is answered at once is recorded with those that arrived together, with the same duration.
    if (recorder.untimed > 0 && this.#answeredTogether.awaits(query.receivedAt))
      recorder.exemplifyLater(traceId, wallTime);
    else recorder.exemplify(duration, traceId, wallTime);
  }

  repeated({ query, rcode, plugin, size, times }: Repetition): void {
    const recorder = this.#recorder(query.listener.label, this.#zones.only ?? ".", query.view);
    recorder.record(query, rcode, plugin, size, times);
  }

  answeredAt(receivedAt: number, { label }: { readonly label: string }): void {
    this.#answeredTogether.add(this.#recorder(label, this.#zones.only ?? ".", ""), receivedAt);
  }

  unrouted(query: Query, outcome: Reply | Failure): void {
    if (query.trace?.leavesNoMark === true) return;
    const recorder = this.#metrics.recorder(query.listener.label, DROPPED_ZONE, "");
    const size =
      outcome.kind === "reply" ? outcome.size : query.questionEnd + (query.hasEdns ? OPT_OCTETS : 0);
    recorder.record(query, outcome.rcode, "", size);
    this.#answeredTogether.add(recorder, query.receivedAt);
  }

  readonly #measure = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind === "stream") return this.#measureStream(outcome, query);
    this.#answeredTogether.add(this.#count(outcome, query), query.receivedAt);
    return outcome;
  };

  readonly #measureLate = (outcome: Outcome, query: Query): Outcome => {
    if (outcome.kind === "stream") return this.#measureStream(outcome, query);
    this.#count(outcome, query).recordDuration(this.#site.clock.turnTime() - query.receivedAt);
    return outcome;
  };

  readonly handle: Handler = afterwards(this.#measure, this.#measureLate);

  readonly recordsOnly = true;

  readonly handleUpdate: Handler = this.handle;

  /** A zone transfer is counted when its last message is sent. */
  #measureStream(stream: ReplyStream, query: Query): ReplyStream {
    stream.whenEnded(() => {
      const recorder = this.#recorderOf(query);
      recorder.record(query, stream.rcode, stream.plugin ?? "", stream.sentOctets);
      recorder.recordDuration(this.#site.clock.now() - query.receivedAt);
    });
    return stream;
  }

  #count(outcome: Exclude<Outcome, ReplyStream>, query: Query): RequestRecorder {
    const recorder = this.#recorderOf(query);
    if (outcome.kind === "reply") recorder.record(query, outcome.rcode, outcome.plugin ?? "", outcome.size);
    // The size is unknown: the server makes the reply later.
    else if (outcome.kind !== "dropped") recorder.record(query, outcome.rcode, outcome.plugin ?? "", 0);
    else recorder.record(query, NO_REPLY, "", 0);
    return recorder;
  }

  #recorderOf(query: Query): RequestRecorder {
    return this.#recorder(query.listener.label, this.#zones.labelOf(query), query.view);
  }

  #recorder(server: string, zone: string, view: string): RequestRecorder {
    const last = this.#last;
    if (last.server === server && last.zone === zone && last.view === view) return last;
    this.#last = this.#metrics.recorder(server, zone, view);
    return this.#last;
  }
}

/** An OPT record without options. */
const OPT_OCTETS = 11;
