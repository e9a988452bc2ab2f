import { Name, Rcode } from "../../dns/index.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { formatGoDuration } from "../../lib/time/duration.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type {
  CounterSlot,
  Next,
  Outcome,
  PluginFault,
  PluginInstance,
  Query,
  Site,
} from "../../plugin/index.ts";
import { SetupError, ZoneList } from "../../plugin/index.ts";
import { FramePool } from "../../plugin/packed/frames.ts";
import { QUERY_TAP } from "../../plugin/services/query-tap.ts";
import { judgeOpenSsl, QuicUnavailable } from "../../quic/availability.ts";
import { upstreamAddress } from "../../upstream/config/address.ts";
import { makePolicy } from "../../upstream/config/policy.ts";
import { readTlsFiles } from "../../upstream/encrypted/tls-files.ts";
import type { encryptedUpstreams } from "../../upstream/encrypted-upstream.ts";
import { UpstreamMetrics } from "../../upstream/exchange/upstream-metrics.ts";
import type { HealthChange } from "../../upstream/health-monitor.ts";
import { type HostLookup, lookupThrough, systemLookup } from "../../upstream/host-lookup.ts";
import type { quicUpstreams } from "../../upstream/quic/quic-upstream.ts";
import { examineTargets, type Place, resolveTargets } from "../../upstream/targets.ts";
import { fastestDatagramPorts } from "../../upstream/udp/batched-datagram-port.ts";
import { UdpExchange } from "../../upstream/udp/udp-exchange.ts";
import { plainUpstream, type Upstream } from "../../upstream/upstream.ts";
import type { ForwardConfig } from "./configuration.ts";
import { ForwardedQuery, type ForwardRules } from "./forwarded-query.ts";

type MakeEncrypted = ReturnType<typeof encryptedUpstreams>;
type MakeQuic = ReturnType<typeof quicUpstreams>;

/** One `forward` directive: sends the queries of its zone to other servers. */
export class Forwarder implements PluginInstance {
  readonly #config: ForwardConfig;
  readonly #site: Site;
  readonly #wheel: TimeoutWheel;
  readonly #metrics: UpstreamMetrics;
  readonly #broken: CounterSlot;
  readonly #rejects: CounterSlot;
  readonly #everything: boolean;
  readonly #except: ZoneList;
  readonly #maxConcurrent: number;
  readonly #tooMany: Error;
  #concurrent = 0;
  #rules: ForwardRules | undefined;

  constructor(config: ForwardConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    this.#wheel = new TimeoutWheel(site.clock, granularity(config.read_timeout));
    this.#metrics = new UpstreamMetrics(site.metrics, site.plugin);
    this.#broken = site.metrics
      .counter({
        name: "coredns_forward_healthcheck_broken_total",
        help: "Queries that found all upstreams down.",
      })
      .slot();
    this.#rejects = site.metrics
      .counter({
        name: "coredns_forward_max_concurrent_rejects_total",
        help: "Queries refused because as many as max_concurrent were waiting.",
      })
      .slot();
    this.#except = new ZoneList(config.except.flatMap((line) => line.ignored_names.zones));
    this.#everything = config.from.isRoot && this.#except.zones.length === 0;
    this.#maxConcurrent = config.max_concurrent;
    this.#tooMany = new Error(`concurrent queries exceeded maximum ${config.max_concurrent}`);
  }

  readonly handle = (query: Query, next: Next): Outcome | Promise<Outcome> => {
    if (!this.#isOurs(query)) {
      query.trace?.note("the name is outside of FROM, or matches except: passed on");
      return next(query);
    }
    const rules = this.#rules;
    if (rules === undefined) return query.fail(Rcode.SERVFAIL, NOT_STARTED);
    if (this.#maxConcurrent > 0 && this.#concurrent >= this.#maxConcurrent) {
      this.#rejects.increment();
      query.trace?.note("max_concurrent queries are already in progress");
      return query.fail(Rcode.REFUSED, this.#tooMany);
    }
    this.#concurrent++;
    return ForwardedQuery.begin(rules, query, next);
  };

  /** The upstreams in the order of the configuration, once started. */
  get upstreams(): readonly Upstream[] {
    return this.#rules?.upstreams ?? [];
  }

  /** The upstreams whose last health check failed. */
  faults(): readonly PluginFault[] {
    return this.upstreams.flatMap(({ address, health, streamHealth }) => {
      const { fault } = health.fault === "" ? streamHealth : health;
      return fault === "" ? [] : [{ subject: address.text, reason: fault }];
    });
  }

  async examine(): Promise<void> {
    await examineTargets(this.#config.to);
    if (this.#config.tls !== undefined) await this.#encryptedUpstreams();
  }

  async start(): Promise<void> {
    const config = this.#config;
    const { clock, log, random } = this.#site;
    const places = await this.#resolveTargets();
    const encrypted = await this.#loadEncryption(places);
    const overQuic = places.some(({ scheme }) => scheme === "quic") ? await this.#quicUpstreams() : undefined;
    const nextIsForward = this.#nextIsForward();
    const openPort = await fastestDatagramPorts(this.#site.machine.environment);
    const common = {
      clock,
      random,
      wheel: this.#wheel,
      metrics: this.#metrics,
      sourceAddress: config.source_address,
      expire: config.expire,
      maxAge: config.max_age,
      maxIdle: config.max_idle_conns,
      probe: {
        domain: config.health_check?.form.domain ?? Name.root,
        recursionDesired: config.health_check?.form.recursionDesired ?? true,
        interval: Math.max(config.health_check?.duration ?? 500, SHORTEST_INTERVAL),
        onChange: (to: string, { fault, since }: HealthChange) => {
          if (fault !== undefined) log.warning(`upstream ${to} fails its health check: ${fault}`);
          else log.info(`upstream ${to} answers again, after ${formatGoDuration(Math.round(since))}`);
        },
      },
    };
    const upstreams = places.map((place) => {
      const { scheme } = place;
      const serverName = config.tls_servername ?? place.serverName;
      if (overQuic !== undefined && scheme === "quic") return overQuic({ ...place, serverName }, common);
      if (encrypted === undefined || scheme === "dns")
        return plainUpstream(place.address, { ...common, onlyTcp: config.force_tcp, openPort });
      return encrypted(
        { ...place, scheme: scheme === "tls" ? "tls" : "https", serverName },
        { ...common, method: config.doh_method },
      );
    });
    this.#rules = {
      upstreams,
      policy: makePolicy(config.policy, random),
      lot: makePolicy("random", random),
      forceTcp: config.force_tcp,
      preferUdp: config.prefer_udp,
      readTimeout: config.read_timeout,
      maxFails: config.max_fails,
      frames: new FramePool(),
      spare: [],
      taps: QUERY_TAP.among(this.#site.block.plugins()),
      maxConnectAttempts: config.max_connect_attempts ?? 2 * upstreams.length,
      failfast: config.failfast_all_unhealthy_upstreams,
      failover: new Set(config.failover.flatMap((line) => line.rcode)),
      nextRcodes: new Set(nextIsForward ? config.next.flatMap((line) => line.rcode) : []),
      nextOnNodata: nextIsForward && config.next_on_nodata,
      clock,
      wheel: this.#wheel,
      log,
      countBroken: () => this.#broken.increment(),
      finished: () => {
        this.#concurrent--;
      },
    };
  }

  stop(): void {
    for (const upstream of this.upstreams) upstream.close();
    this.#wheel.clear();
  }

  #isOurs(query: Query): boolean {
    if (this.#everything) return true;
    const { from } = this.#config;
    const { name } = query;
    if (!name.isAtOrBelow(from)) return false;
    return name.equals(from) || !this.#except.contains(name);
  }

  /** Only for another `forward`: before any other plugin the upstream's answer is better than a failure. */
  #nextIsForward(): boolean {
    const handlers = this.#site.block.plugins().filter(({ instance }) => instance.handle !== undefined);
    const place = handlers.findIndex(({ instance }) => instance === this);
    return place >= 0 && handlers[place + 1]?.name === this.#site.plugin;
  }

  /** `undefined` without encrypted upstreams, so that TLS is not loaded. */
  async #loadEncryption(places: readonly Place[]): Promise<MakeEncrypted | undefined> {
    return places.some(({ scheme }) => scheme === "tls" || scheme === "https")
      ? this.#encryptedUpstreams()
      : undefined;
  }

  async #quicUpstreams(): Promise<MakeQuic> {
    const { log, machine } = this.#site;
    const material = await readTlsFiles(this.#config.tls?.files ?? [], this.#site);
    const { quicUpstreams } = await import("../../upstream/quic/quic-upstream.ts");
    try {
      const advice = judgeOpenSsl(machine.openssl);
      if (advice !== undefined) log.warning(advice);
      return quicUpstreams(material);
    } catch (error) {
      const reason = messageOf(error);
      throw new SetupError(error instanceof QuicUnavailable ? reason : `tls: ${reason}`);
    }
  }

  async #encryptedUpstreams(): Promise<MakeEncrypted> {
    const material = await readTlsFiles(this.#config.tls?.files ?? [], this.#site);
    const { encryptedUpstreams } = await import("../../upstream/encrypted-upstream.ts");
    try {
      return encryptedUpstreams(material);
    } catch (error) {
      throw new SetupError(`tls: ${messageOf(error)}`);
    }
  }

  async #resolveTargets(): Promise<Place[]> {
    const { resolver, to, source_address: sourceAddress, expire } = this.#config;
    const servers = resolver
      .flatMap((line) => line.address)
      .flatMap(({ host, port }) => upstreamAddress(host, port) ?? [])
      .map((remote) => {
        const { clock, random } = this.#site;
        const metrics = this.#metrics.exchange(remote.text, "udp");
        return new UdpExchange({
          remote,
          clock,
          random,
          wheel: this.#wheel,
          metrics,
          sourceAddress,
          expire,
          maxAge: 0,
        });
      });
    const lookup: HostLookup = servers.length === 0 ? systemLookup : lookupThrough(servers);
    try {
      return await resolveTargets(to, lookup, this.#bootstrap());
    } finally {
      for (const server of servers) server.close();
    }
  }

  #bootstrap(): Map<string, string[]> {
    const addresses = new Map<string, string[]>();
    for (const { host, address } of this.#config.bootstrap) {
      const name = host.toLowerCase().toString();
      addresses.set(name, [...(addresses.get(name) ?? []), ...address]);
    }
    return addresses;
  }
}

const NOT_STARTED = new Error("the upstreams are not known yet");

/** Milliseconds between two probes, whatever the configuration says. */
const SHORTEST_INTERVAL = 10;

/** Time-outs are at most two granules late: fine enough not to be noticed, coarse enough to cost nothing. */
function granularity(readTimeout: number): number {
  return Math.min(Math.max(readTimeout / 20, 1), 50);
}
