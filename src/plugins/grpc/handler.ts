import type { SecureContext } from "node:tls";
import { Name, Rcode } from "../../dns/index.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import {
  type Next,
  type Outcome,
  type PluginInstance,
  type Query,
  type Site,
  ZoneList,
} from "../../plugin/index.ts";
import { makePolicy } from "../../upstream/config/policy.ts";
import { readTlsFiles, tlsContext } from "../../upstream/encrypted/tls-files.ts";
import { UpstreamMetrics } from "../../upstream/exchange/upstream-metrics.ts";
import { grpcUpstream } from "../../upstream/grpc-upstream.ts";
import { systemLookup } from "../../upstream/host-lookup.ts";
import { examineTargets, resolveTargets } from "../../upstream/targets.ts";
import type { GrpcConfig } from "./config.ts";
import { GrpcQuery, type GrpcRules } from "./grpc-query.ts";
import { GrpcMetrics } from "./metrics.ts";

/** Milliseconds: time-outs are at most two of these late. */
const GRANULARITY = 50;
/** Milliseconds after which an idle connection closes. */
const EXPIRE = 60_000;
/** Milliseconds between two probes of a failed upstream. */
const PROBE_INTERVAL = 1_000;

/** One `grpc` directive. */
export class GrpcForwarder implements PluginInstance {
  readonly #config: GrpcConfig;
  readonly #site: Site;
  readonly #wheel: TimeoutWheel;
  readonly #metrics: UpstreamMetrics;
  readonly #except: ZoneList;
  #rules: GrpcRules | undefined;

  constructor(config: GrpcConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    this.#wheel = new TimeoutWheel(site.clock, GRANULARITY);
    this.#metrics = new UpstreamMetrics(site.metrics, site.plugin);
    this.#except = new ZoneList(config.except.flatMap((line) => line.ignored_names.zones));
  }

  readonly handle = (query: Query, next: Next): Outcome | Promise<Outcome> => {
    if (!this.#isOurs(query.name)) {
      query.trace?.note("the name is outside of FROM, or matches except: passed on");
      return next(query);
    }
    const rules = this.#rules;
    if (rules === undefined) return query.fail(Rcode.SERVFAIL, new Error("the upstreams are not known yet"));
    return GrpcQuery.begin(rules, query, next);
  };

  async examine(): Promise<void> {
    await examineTargets(this.#config.to);
    await this.#context();
  }

  async start(): Promise<void> {
    const { clock, random, metrics } = this.#site;
    const { to, tls_servername: serverName, policy, fallthrough } = this.#config;
    const context = await this.#context();
    const places = await resolveTargets(to, systemLookup);
    this.#rules = {
      upstreams: places.map((place) =>
        grpcUpstream(
          { ...place, serverName: serverName ?? place.serverName },
          {
            clock,
            random,
            context,
            wheel: this.#wheel,
            metrics: this.#metrics,
            expire: EXPIRE,
            maxAge: 0,
            probe: { domain: Name.root, recursionDesired: true, interval: PROBE_INTERVAL },
          },
        ),
      ),
      policy: makePolicy(policy, random),
      fallthrough,
      clock,
      log: this.#site.log,
      metrics: new GrpcMetrics(metrics),
    };
  }

  stop(): void {
    for (const upstream of this.#rules?.upstreams ?? []) upstream.close();
    this.#wheel.clear();
  }

  #isOurs(name: Name): boolean {
    const { from } = this.#config;
    return name.isAtOrBelow(from) && (name.equals(from) || !this.#except.contains(name));
  }

  /** `undefined` without the option `tls`: the connections are not encrypted. */
  async #context(): Promise<SecureContext | undefined> {
    const { tls } = this.#config;
    if (tls === undefined) return undefined;
    return tlsContext(await readTlsFiles(tls.files, this.#site));
  }
}
