/**
 * SkyDNS's stub zones: zones on other servers, listed in etcd below `dns/stub` of the first zone
 * (docs/spec/kube-dns.md#stub-zones). Names in them are resolved there even if they are in a zone of etcd.
 */
import { type EdnsOption, EncodedSections, Flag, Name, Rcode, WireError } from "../../dns/index.ts";
import { octetAt, readU16 } from "../../dns/octets.ts";
import type { KeyTree } from "../../etcd/mirror/key-tree.ts";
import { keyOfName } from "../../etcd/skydns/key-path.ts";
import { readServiceItem, ServiceItemError } from "../../etcd/skydns/service-item.ts";
import { TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import { DROPPED, type Outcome, type Query, type Site, ZoneList } from "../../plugin/index.ts";
import type { Waiter } from "../../plugin/query/query.ts";
import { type UpstreamAddress, upstreamAddress } from "../../upstream/config/address.ts";
import { type Exchange, UpstreamRequest } from "../../upstream/exchange/exchange.ts";
import { UpstreamMetrics } from "../../upstream/exchange/upstream-metrics.ts";
import { TcpExchange } from "../../upstream/tcp/tcp-exchange.ts";
import { UdpExchange } from "../../upstream/udp/udp-exchange.ts";

const DNS_PORT = 53;
/** Time-out for an answer in milliseconds. */
const READ_TIMEOUT = 2_000;
/** Milliseconds after which an idle socket is closed. */
const EXPIRE = 10_000;
const MAX_STUB_KEYS = 1_000;

/** Marks a query that was already forwarded: two servers that point to each other must not loop. */
const LOOP_GUARD = 65_011;

interface StubServer {
  readonly datagram: Exchange;
  readonly stream: Exchange;
}

interface StubZone {
  readonly servers: readonly StubServer[];
}

export class StubZones {
  readonly #site: Site;
  readonly #prefix: string;
  readonly #below: Name;
  readonly #wheel: TimeoutWheel;
  readonly #metrics: UpstreamMetrics;
  readonly #servers = new Map<string, StubServer>();
  #zones = new ZoneList([]);
  #byZone = new Map<string, StubZone>();

  /** @param zone the first zone of the directive */
  constructor(site: Site, prefix: string, zone: Name) {
    this.#site = site;
    this.#prefix = prefix;
    this.#below = Name.fromLabels(["stub", "dns"], zone);
    this.#wheel = new TimeoutWheel(site.clock, 50);
    this.#metrics = new UpstreamMetrics(site.metrics, site.plugin);
  }

  /** The parent key of all stub zones. */
  get key(): string {
    return keyOfName(this.#prefix, this.#below);
  }

  /** Reads all stub zones again. Servers that stay keep their sockets. */
  read(tree: KeyTree): void {
    const addresses = new Map<string, UpstreamAddress[]>();
    const { key: top } = this;
    for (const { key, value } of tree.below(top, MAX_STUB_KEYS)) {
      // The last label only distinguishes the servers of a zone.
      const labels = key
        .slice(top.length + 1)
        .split("/")
        .slice(0, -1);
      if (labels.length === 0) continue;
      const address = this.#addressOf(key, value);
      const zone = Name.tryParse(`${labels.reverse().join(".")}.`);
      if (address === undefined || zone === undefined) continue;
      const text = zone.toLowerCase().toString();
      const known = addresses.get(text);
      if (known === undefined) addresses.set(text, [address]);
      else known.push(address);
    }
    this.#byZone = new Map(
      [...addresses].map(([zone, all]) => [zone, { servers: all.map((address) => this.#server(address)) }]),
    );
    this.#zones = new ZoneList([...addresses.keys()].map((zone) => Name.parse(zone)));
    this.#closeAllBut(new Set([...addresses.values()].flat().map(({ key }) => key)));
  }

  /** The answer from the stub zone of the name; `undefined` for a name in no stub zone. */
  ask(query: Query): Outcome | Promise<Outcome> | undefined {
    const zone = this.#byZone.size === 0 ? undefined : this.#zones.match(query.name);
    const servers = zone === undefined ? undefined : this.#byZone.get(zone.toString())?.servers;
    if (servers === undefined || servers.length === 0) return undefined;
    if (query.edns?.options.some(({ code }) => code === LOOP_GUARD)) {
      query.trace?.note("the query came from a stub zone and would loop: dropped");
      return DROPPED;
    }
    query.trace?.note(`the name lies in the stub zone ${zone}`);
    return new Promise((resolve) => new StubQuery(query, servers, resolve).proceed());
  }

  stop(): void {
    this.#closeAllBut(new Set());
    this.#wheel.clear();
  }

  #addressOf(key: string, value: Buffer): UpstreamAddress | undefined {
    try {
      const { host, port } = readServiceItem(key, value);
      const address = upstreamAddress(host, port === 0 ? DNS_PORT : port);
      if (address !== undefined) return address;
      this.#site.log.warning(`stub zone ${key} is skipped: '${host}' is not an IP address`);
    } catch (error) {
      if (!(error instanceof ServiceItemError)) throw error;
      this.#site.log.warning(`stub zone is skipped: ${error.message}`);
    }
    return undefined;
  }

  #server(address: UpstreamAddress): StubServer {
    const known = this.#servers.get(address.key);
    if (known !== undefined) return known;
    const { clock, random } = this.#site;
    const common = { remote: address, clock, random, wheel: this.#wheel, expire: EXPIRE, maxAge: 0 };
    const server = {
      datagram: new UdpExchange({ ...common, metrics: this.#metrics.exchange(address.text, "udp") }),
      stream: new TcpExchange({
        ...common,
        maxIdle: 0,
        metrics: this.#metrics.exchange(address.text, "tcp"),
      }),
    };
    this.#servers.set(address.key, server);
    return server;
  }

  #closeAllBut(kept: ReadonlySet<string>): void {
    for (const [key, server] of this.#servers) {
      if (kept.has(key)) continue;
      this.#servers.delete(key);
      server.datagram.close();
      server.stream.close();
    }
  }
}

/** One query to the servers of a stub zone. */
class StubQuery extends UpstreamRequest implements Waiter {
  readonly #query: Query;
  readonly #sent: Query;
  readonly #servers: readonly StubServer[];
  readonly #resolve: (outcome: Outcome) => void;
  #attempts = 0;
  #isOver = false;

  constructor(query: Query, servers: readonly StubServer[], resolve: (outcome: Outcome) => void) {
    super();
    this.#query = query;
    this.#servers = servers;
    this.#resolve = resolve;
    const guard: EdnsOption = { code: LOOP_GUARD, data: new Uint8Array([1]) };
    const { udpSize = 1232, version = 0, dnssecOk = false, options = [] } = query.edns ?? {};
    this.#sent = query.derive({ edns: { udpSize, version, dnssecOk, options: [...options, guard] } });
    query.root.waiter = this;
  }

  get bytes(): Uint8Array {
    return this.#sent.bytes;
  }

  get length(): number {
    return this.#sent.length;
  }

  get questionEnd(): number {
    return this.#sent.questionEnd;
  }

  /** Tries the next server. The query's id selects the first. */
  proceed(error?: Error): void {
    const count = this.#servers.length;
    const server = this.#servers[(this.#query.id + this.#attempts) % count];
    if (server === undefined || this.#attempts >= count) {
      this.#settle(this.#query.fail(Rcode.SERVFAIL, error));
      return;
    }
    this.#attempts++;
    const exchange = this.#query.overStream ? server.stream : server.datagram;
    exchange.send(this, READ_TIMEOUT, READ_TIMEOUT);
  }

  answered(octets: Uint8Array): void {
    if (this.#isOver) return;
    try {
      const { encoded } = EncodedSections.scan(octets, octets.length);
      const reply = this.#query.reply({ rcode: octetAt(octets, 3) & 0xf, encoded });
      reply.flags = readU16(octets, 2) & (Flag.AA | Flag.TC | Flag.RA | Flag.AD);
      this.#settle(reply);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.proceed(error);
    }
  }

  failed(error: Error): void {
    if (!this.#isOver) this.proceed(error);
  }

  abandon(): void {
    this.carrier?.letGo(this);
    this.#settle(DROPPED);
  }

  #settle(outcome: Outcome): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { root } = this.#query;
    if (root.waiter === this) root.waiter = undefined;
    this.#resolve(outcome);
  }
}
