import { Name } from "../../dns/index.ts";
import { EtcdClient, type KeyRange, rangeBelow } from "../../etcd/client/etcd-client.ts";
import { KeyMirror } from "../../etcd/mirror/key-mirror.ts";
import { keyOfName, nameOfKey, normalisePrefix } from "../../etcd/skydns/key-path.ts";
import { readServiceItem, ServiceItemError } from "../../etcd/skydns/service-item.ts";
import type { Offer } from "../../plugin/contract/service.ts";
import {
  type Handler,
  type PlacedPlugin,
  type PluginFault,
  type PluginInstance,
  ServiceKey,
  type Site,
  type Timer,
} from "../../plugin/index.ts";
import { loadPageRelease } from "../../runtime/memory-release.ts";
import type { TlsMaterial } from "../../upstream/encrypted/tls-client.ts";
import { readTlsFiles, tlsContext } from "../../upstream/encrypted/tls-files.ts";
import type { EtcdConfig } from "./config.ts";
import { type AuthorityRules, EtcdHandler } from "./handler.ts";
import type { ItemRules } from "./items.ts";
import { EtcdMetrics } from "./metrics.ts";
import { readSkydnsConfig } from "./skydns-config.ts";
import { MirroredKeys, RemoteKeys } from "./sources.ts";
import { StubZones } from "./stub-zones.ts";

const DEFAULT_ENDPOINT = "http://localhost:2379";
const DEFAULT_TTL = 300;
const DEFAULT_PRIORITY = 10;
const DEFAULT_MIN_TTL = 30;
/** Time-out of a request in milliseconds. */
const TIMEOUT = 5_000;
/** Milliseconds that a reload waits for the first listing. */
const WARM_UP = 5_000;
const MAX_OCTETS = 128 * 1024 * 1024;
/** Bound for the malformed values named in the log, per listing and the changes after it. */
const MAX_COMPLAINTS = 10;
/** Milliseconds in which failures of queries are logged once. */
const FAILURE_PAUSE = 5_000;

/** The mirrored keys, which outlive a reload with the same settings. */
interface KnownKeys {
  /** Identifies their source: endpoints, credentials, and the wanted keys. */
  readonly source: string;
  readonly client: EtcdClient;
  readonly mirror: KeyMirror;
  /** Instances that use them. */
  users: number;
}

const ETCD_KEYS: ServiceKey<KnownKeys> = new ServiceKey("keys of etcd");

/** One `etcd` directive: SkyDNS records, mirrored here and kept up to date. */
export class Etcd implements PluginInstance {
  readonly #config: EtcdConfig;
  readonly #site: Site;
  readonly #prefix: string;
  readonly #rules: ItemRules;
  readonly #authority: AuthorityRules = { minTtl: DEFAULT_MIN_TTL, hostmaster: undefined };
  readonly #handler: EtcdHandler;
  readonly #metrics: EtcdMetrics;
  readonly #stubs: StubZones | undefined;
  readonly #synced = Promise.withResolvers<void>();
  #predecessors: readonly PlacedPlugin[] = [];
  #keys: KnownKeys | undefined;
  #unlisten: (() => void) | undefined;
  #client: EtcdClient | undefined;
  #mirror: KeyMirror | undefined;
  #mirrored: MirroredKeys | undefined;
  #remote: RemoteKeys | undefined;
  #changedAt: number;
  #complaints = 0;
  #lastFailure = Number.NEGATIVE_INFINITY;
  #local: { readonly name: Name; readonly target: Name } | undefined;
  #touched: Name[] = [];
  #round: Timer | undefined;

  constructor(config: EtcdConfig, site: Site) {
    this.#config = config;
    this.#site = site;
    this.#prefix = normalisePrefix(config.path);
    this.#rules = {
      ttl: DEFAULT_TTL,
      priority: DEFAULT_PRIORITY,
      minLease: config["min-lease-ttl"],
      maxLease: config["max-lease-ttl"],
    };
    site.changingNames.addZones(config.zones.zones, { tellsOfAdditions: false });
    this.#metrics = new EtcdMetrics(site.metrics, config.zones);
    this.#changedAt = seconds(site.clock.wallTime());
    const [first] = config.zones.zones;
    this.#stubs =
      config.stubzones && !config.read_through && first !== undefined
        ? new StubZones(site, this.#prefix, first)
        : undefined;
    this.#handler = new EtcdHandler({
      zones: config.zones,
      prefix: this.#prefix,
      apexFallsBack: !config.no_apex_fallback,
      rules: this.#rules,
      authority: this.#authority,
      fallthrough: config.fallthrough,
      source: () => this.#source(),
      isKept: () => this.#isKept,
      isAway: () => this.#mirror?.state === "away",
      serial: () => (this.#isKept ? this.#changedAt : seconds(site.clock.wallTime())),
      staleAnswer: () => this.#metrics.stale.increment(),
      failed: (error) => this.#queryFailed(error),
    });
  }

  readonly handle: Handler = (query, next) => {
    const local = this.#local;
    // SkyDNS's name for the host that it runs on.
    if (local !== undefined && query.name.equals(local.name))
      return this.#handler.handle(query.derive({ name: local.target }), next);
    return this.#stubs?.ask(query) ?? this.#handler.handle(query, next);
  };

  get services(): readonly Offer<unknown>[] {
    return this.#keys === undefined ? [] : [ETCD_KEYS.offer(this.#keys)];
  }

  inherit(predecessors: readonly PlacedPlugin[]): void {
    this.#predecessors = predecessors;
  }

  async examine(): Promise<void> {
    const tls = await this.#readTls();
    if (tls !== undefined) await tlsContext(tls);
  }

  async start(): Promise<void> {
    const { endpoint, credentials, read_through: readThrough } = this.#config;
    const { clock, log, random } = this.#site;
    const endpoints = endpoint?.urls ?? [DEFAULT_ENDPOINT];
    const tls = await this.#readTls();
    const client = new EtcdClient({
      endpoints,
      context: tls === undefined ? undefined : await tlsContext(tls),
      credentials: credentials?.login,
      clock,
      timeout: TIMEOUT,
    });
    this.#client = client;
    this.#remote = new RemoteKeys(client);
    if (readThrough) {
      this.#synced.resolve();
      return;
    }
    const wanted = this.#wantedKeys();
    const source = JSON.stringify([endpoints, credentials?.login, tls, wanted]);
    const former = ETCD_KEYS.among(this.#predecessors).find((each) => each.source === source);
    this.#predecessors = [];
    if (former !== undefined) {
      client.close();
      this.#use(former);
      return;
    }
    const mirror = new KeyMirror({
      client,
      ranges: this.#ranges(wanted),
      wants: (key) => wanted.some((top) => key === top || key.startsWith(`${top}/`)),
      clock,
      log,
      random,
      maxOctets: MAX_OCTETS,
    });
    mirror.start();
    this.#use({ source, client, mirror, users: 0 });
  }

  /**
   * Answers from these keys from now on; a reload takes them over from the previous configuration, whatever the state
   * of etcd.
   */
  #use(keys: KnownKeys): void {
    const { client, mirror } = keys;
    keys.users++;
    this.#keys = keys;
    this.#client = client;
    this.#remote = new RemoteKeys(client);
    this.#mirror = mirror;
    this.#mirrored = new MirroredKeys(mirror);
    this.#unlisten = mirror.listen({
      seen: (key, value) => this.#seen(key, value),
      changed: (key) => this.#changed(key),
      listed: () => this.#listed(),
      // Names that were missing may exist now.
      lost: () => this.#handler.forgetAnswers(),
    });
    this.#metrics.follow(mirror, this.#site.clock);
    if (mirror.isSynced) this.#listed();
  }

  async warmUp(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = this.#site.clock.after(WARM_UP, resolve);
    await Promise.race([promise, this.#synced.promise]);
    timer.cancel();
  }

  /** The mirrored keys are enough to answer, whatever the state of etcd. */
  ready(): boolean {
    return this.#config.read_through || this.#mirror?.state === "too large" || this.#isKept;
  }

  describeState(): string[] {
    const zone = this.#config.zones.zones[0] ?? Name.root;
    const mirror = this.#mirror;
    if (mirror === undefined) return [`${zone} etcd: reads ${this.#client?.endpoint ?? ""} for every query`];
    const { state, tree, age, lastError, revision } = mirror;
    const since = `${Math.floor(age / 1000)}s`;
    const keys = `${tree.size} keys at revision ${revision}`;
    switch (state) {
      case "watching":
        return [`${zone} etcd: watching ${this.#client?.endpoint ?? ""}, ${keys}`];
      case "away":
        return [
          mirror.isSynced
            ? `${zone} etcd: away for ${since} (${lastError}); answering from the last known ${keys}`
            : `${zone} etcd: away for ${since} (${lastError}); no keys were listed yet`,
        ];
      case "too large":
        return [
          `${zone} etcd: too many keys to mirror; reads ${this.#client?.endpoint ?? ""} for every query`,
        ];
      case "listing":
        return [`${zone} etcd: being listed`];
    }
  }

  faults(): PluginFault[] {
    const { state, age, lastError = "", isSynced = false } = this.#mirror ?? {};
    if (state !== "away") return [];
    const since = `away for ${Math.floor((age ?? 0) / 1000)}s (${lastError})`;
    const reason = `${since}: ${isSynced ? "answers come from the last known keys" : "no keys were listed yet"}`;
    return [{ subject: `etcd ${this.#client?.endpoint ?? ""}`, reason }];
  }

  async stop(): Promise<void> {
    this.#round?.cancel();
    this.#synced.resolve();
    this.#metrics.stop();
    this.#unlisten?.();
    const keys = this.#keys;
    if (keys === undefined) this.#client?.close();
    else if (--keys.users === 0) {
      keys.mirror.stop();
      keys.client.close();
    }
    this.#stubs?.stop();
    this.#handler.release(await loadPageRelease());
  }

  get #isKept(): boolean {
    return this.#mirror?.isSynced === true;
  }

  #source(): MirroredKeys | RemoteKeys {
    if (this.#isKept && this.#mirrored !== undefined) return this.#mirrored;
    if (this.#remote === undefined) throw new Error("etcd is not known yet");
    this.#metrics.readThrough.increment();
    return this.#remote;
  }

  /** The roots of the subtrees that this directive answers from, without those inside another. */
  #wantedKeys(): string[] {
    const zones = this.#config.zones.zones.map((zone) => keyOfName(this.#prefix, zone));
    if (this.#config.skydns_config) zones.push(this.#configKey);
    if (this.#stubs !== undefined) zones.push(this.#stubs.key);
    return zones.filter(
      (key, index) =>
        zones.indexOf(key) === index && !zones.some((other) => key !== other && key.startsWith(`${other}/`)),
    );
  }

  get #configKey(): string {
    return `${this.#prefix}/config`;
  }

  #ranges(keys: readonly string[]): KeyRange[] {
    return keys.map((key) =>
      key === "" ? rangeBelow("") : { ...rangeBelow(key), from: Buffer.from(key, "latin1") },
    );
  }

  #seen(key: string, value: Buffer): void {
    if (key === this.#configKey) return;
    try {
      readServiceItem(key, value);
    } catch (error) {
      if (!(error instanceof ServiceItemError)) throw error;
      this.#metrics.malformed.increment();
      this.#complaints++;
      if (this.#complaints > MAX_COMPLAINTS) return;
      const more = this.#complaints === MAX_COMPLAINTS ? "; further skipped keys are not logged" : "";
      this.#site.log.warning(`key is skipped: ${error.message}${more}`);
    }
  }

  #listed(): void {
    this.#complaints = 0;
    this.#changedAt = seconds(this.#site.clock.wallTime());
    this.#handler.forgetAnswers();
    this.#stubs?.read((this.#mirror ?? unknown()).tree);
    this.#readSkydnsConfig();
    this.#synced.resolve();
  }

  #changed(key: string): void {
    this.#changedAt = seconds(this.#site.clock.wallTime());
    this.#handler.forgetAnswers();
    if (key === this.#configKey) this.#readSkydnsConfig();
    const stubs = this.#stubs;
    if (stubs !== undefined && key.startsWith(`${stubs.key}/`)) stubs.read((this.#mirror ?? unknown()).tree);
    const name = nameOfKey(this.#prefix, key);
    const zone = name === undefined ? undefined : this.#config.zones.match(name);
    if (name === undefined || zone === undefined) return;
    // What stands below a name is shown at the name, however far below; that of the zone's apex grows old by itself, unless it is meant.
    let highest = name;
    while (highest.labelCount > zone.labelCount + 1) highest = highest.parent ?? zone;
    const isOfApex = name.labelCount > zone.labelCount + 1 && highest.labelText(0) === "dns";
    this.#touched.push(isOfApex ? zone : highest);
    this.#round ??= this.#site.clock.after(0, () => this.#forgetTouched());
  }

  #forgetTouched(): void {
    this.#round = undefined;
    const names = this.#touched;
    this.#touched = [];
    this.#site.changingNames.tell(names);
  }

  #readSkydnsConfig(): void {
    if (!this.#config.skydns_config) return;
    const entry = this.#mirror?.tree.get(this.#configKey);
    if (entry === undefined) return;
    const { log } = this.#site;
    try {
      const read = readSkydnsConfig(entry.value.toString("utf8"));
      this.#rules.ttl = read.ttl ?? DEFAULT_TTL;
      this.#rules.priority = read.priority ?? DEFAULT_PRIORITY;
      this.#authority.minTtl = read.minTtl ?? DEFAULT_MIN_TTL;
      this.#authority.hostmaster = read.hostmaster;
      const [zone] = this.#config.zones.zones;
      this.#local =
        read.local === undefined || zone === undefined
          ? undefined
          : { name: Name.fromLabels(["local", "dns"], zone), target: read.local };
      for (const line of read.elsewhere) log.info(`${this.#configKey} sets ${line}`);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      log.warning(`${this.#configKey} is skipped: ${error.message}`);
    }
  }

  #queryFailed(error: Error): void {
    const now = this.#site.clock.now();
    if (now - this.#lastFailure < FAILURE_PAUSE) return;
    this.#lastFailure = now;
    this.#site.log.error(error.message);
  }

  /** One file is a CA, two are a certificate and its key, three are all of them. */
  async #readTls(): Promise<TlsMaterial | undefined> {
    const files = this.#config.tls?.files;
    return files === undefined ? undefined : readTlsFiles(files, this.#site);
  }
}

function unknown(): never {
  throw new Error("etcd is not known yet");
}

function seconds(milliseconds: number): number {
  return Math.floor(milliseconds / 1000);
}
