/**
 * The open DNS sockets. A configuration asks for the listen points it needs; those that are open stay open, whatever
 * configuration opened them, so a reload loses no query that is on its way.
 */
import type { Clock } from "../lib/clock.ts";
import type { MetricsRegistry } from "../lib/metrics.ts";
import type { TransportName } from "../plugin/endpoint.ts";
import { listenTcp, type TcpLimits } from "../transports/tcp.ts";
import { ListenError, type Transport } from "../transports/transport.ts";
import type { UdpListen } from "../transports/udp.ts";
import type { ListenPoint } from "./generation.ts";
import { DnsListener } from "./serving/dns-listener.ts";

/** Where the first data plane listens, and which of its sockets the others can stand beside. */
export interface ListenPlace {
  readonly port: number;
  readonly udp: boolean;
  readonly tcp: boolean;
}

interface OpenListener {
  readonly listener: DnsListener;
  readonly transports: readonly Transport[];
  point: ListenPoint;
}

export interface ListenerPoolOptions {
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** How UDP sockets are opened. */
  readonly listenUdp: () => Promise<UdpListen>;
  /** Hears once of a socket that was opened for one data plane alone, and cannot be shared with the others now. */
  onUnshared?(label: string, transport: TransportName): void;
  readonly onError: (error: unknown) => void;
}

export class ListenerPool {
  readonly #open = new Map<string, OpenListener>();
  /** Listeners that no configuration wants, until their last answers are out. */
  readonly #retiring = new Map<string, Promise<void>>();
  readonly #unshared = new Set<string>();
  readonly #options: ListenerPoolOptions;

  constructor(options: ListenerPoolOptions) {
    this.#options = options;
  }

  listener(label: string): DnsListener | undefined {
    return this.#open.get(label)?.listener;
  }

  get labels(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** Where a listener really is: port 0 has become a port by then. */
  address(label: string): { host: string; port: number } | undefined {
    const transport = this.#open.get(label)?.transports[0];
    return transport && { host: transport.host, port: transport.port };
  }

  /** For the other data planes: where those listen points are that have more than one socket. */
  places(points: readonly ListenPoint[]): Map<string, ListenPlace> {
    const places = new Map<string, ListenPlace>();
    for (const { label, sockets } of points) {
      const transports = this.#open.get(label)?.transports ?? [];
      const port = transports[0]?.port;
      if (sockets === 1 || port === undefined) continue;
      const isShared = (name: TransportName): boolean =>
        transports.some((transport) => transport.name === name && transport.share?.() === true);
      places.set(label, { port, udp: isShared("udp"), tcp: isShared("tcp") });
    }
    return places;
  }

  /**
   * Opens what is not open yet, and answers there at once; open listeners go on as they are until {@link PreparedListeners.commit}.
   * The first data plane opens its sockets alone, so that a port in use is noticed, and shares them afterwards; the others get
   * `places` from it.
   * @throws ListenError when an address cannot be had; everything opened for this call is closed again
   */
  async prepare(
    points: readonly ListenPoint[],
    places?: ReadonlyMap<string, ListenPlace>,
  ): Promise<PreparedListeners> {
    const opened: string[] = [];
    try {
      for (const point of points) {
        const open = this.#open.get(point.label);
        if (open !== undefined) {
          if (places === undefined && point.sockets > 1) this.#share({ label: point.label, ...open });
          continue;
        }
        await this.#retiring.get(point.label);
        this.#open.set(point.label, await this.#openPoint(point, places?.get(point.label)));
        opened.push(point.label);
      }
    } catch (error) {
      await this.#close(opened);
      throw error;
    }
    return {
      commit: () => this.#commit(points),
      rollBack: () => this.#close(opened),
    };
  }

  /** Takes no new queries; answers to those under way still go out. */
  pause(): void {
    for (const { transports } of this.#open.values()) for (const transport of transports) transport.pause();
  }

  async close(): Promise<void> {
    await this.#close([...this.#open.keys()]);
    await Promise.all(this.#retiring.values());
  }

  /** @returns what closes the listeners that no configuration wants any more, to be called once they are idle */
  #commit(points: readonly ListenPoint[]): () => Promise<void> {
    const wanted = new Set(points.map((point) => point.label));
    for (const point of points) {
      const open = this.#open.get(point.label);
      if (open === undefined) continue;
      open.point = point;
      open.listener.service = point.service;
    }
    const transports: Transport[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const [label, open] of this.#open) {
      if (wanted.has(label)) continue;
      this.#open.delete(label);
      this.#retiring.set(label, promise);
      void promise.then(() => this.#retiring.delete(label));
      for (const transport of open.transports) transport.pause();
      transports.push(...open.transports);
    }
    return async () => {
      await Promise.all(transports.map((transport) => transport.close()));
      resolve();
    };
  }

  async #openPoint(point: ListenPoint, place: ListenPlace | undefined): Promise<OpenListener> {
    const listener = new DnsListener({
      label: point.label,
      service: point.service,
      clock: this.#options.clock,
      counters: this.#counters(point.label),
      onError: this.#options.onError,
    });
    const openers = this.#openers(point, listener, await this.#options.listenUdp());
    if (place !== undefined) return { listener, point, transports: await openShared(openers, place) };
    const transports = await withFreePort(point.port, (port) => openBoth(openers, port));
    if (point.sockets === 1) return { listener, point, transports };
    return { listener, point, transports: await makeShared(openers, transports) };
  }

  #openers(point: ListenPoint, listener: DnsListener, listenUdp: UdpListen): Openers {
    const { clock, onError } = this.#options;
    const { host } = point;
    const turnedAway = this.#shed(point.label, "connection");
    const cutOff = this.#cutOff(point.label);
    const ignored = this.#ignored(point.label);
    const limits = (): TcpLimits => {
      const { settings } = this.#open.get(point.label)?.point ?? point;
      return {
        readTimeout: settings.readTimeout,
        idleTimeout: settings.idleTimeout,
        maxQueries: settings.maxTcpQueries,
      };
    };
    return {
      tcp: (port, reusePort) =>
        listenTcp({ host, port }, listener.receiver("tcp"), {
          clock,
          limits,
          reusePort,
          onTurnedAway: () => turnedAway.increment(),
        }),
      udp: (port, reusePort) =>
        listenUdp({ host, port }, listener.receiver("udp"), {
          onSendError: onError,
          onCutOff: () => cutOff.increment(),
          onUnanswerable: () => ignored.increment(),
          reusePort,
        }),
    };
  }

  /** Lets the followers in on the sockets that are open. What cannot be shared any more stays with this data plane. */
  #share({ label, transports }: { label: string; transports: readonly Transport[] }): void {
    for (const transport of transports) {
      const key = `${transport.name} ${label}`;
      if (transport.share?.() === true || this.#unshared.has(key)) continue;
      this.#unshared.add(key);
      this.#options.onUnshared?.(label, transport.name);
    }
  }

  #counters(label: string): { shed: Counter; rejected: Counter; ignored: Counter } {
    const { metrics } = this.#options;
    const rejected = metrics.counter({
      name: "portolan_dns_rejected_messages_total",
      help: "Messages answered FORMERR or NOTIMP before any plugin saw them.",
      labels: ["server"],
    });
    return {
      shed: this.#shed(label, "waiting"),
      rejected: rejected.slot(label),
      ignored: this.#ignored(label),
    };
  }

  #ignored(label: string): Counter {
    const family = this.#options.metrics.counter({
      name: "portolan_dns_ignored_messages_total",
      help: "Messages passed over in silence: shorter than a header, replies, or sent from port 0.",
      labels: ["server"],
    });
    return family.slot(label);
  }

  #cutOff(label: string): Counter {
    const family = this.#options.metrics.counter({
      name: "portolan_dns_cut_datagrams_total",
      help: "Datagrams longer than the 4096 octets that there is room for, which are answered FORMERR.",
      labels: ["server"],
    });
    return family.slot(label);
  }

  #shed(label: string, reason: string): Counter {
    const family = this.#options.metrics.counter({
      name: "portolan_dns_shed_total",
      help: "Queries (reason waiting) and connections (reason connection) turned away because too many were open.",
      labels: ["server", "reason"],
    });
    return family.slot(label, reason);
  }

  async #close(labels: readonly string[]): Promise<void> {
    const transports: Transport[] = [];
    for (const label of labels) {
      transports.push(...(this.#open.get(label)?.transports ?? []));
      this.#open.delete(label);
    }
    await Promise.all(transports.map((transport) => transport.close()));
  }
}

type Counter = ReturnType<ReturnType<MetricsRegistry["counter"]>["slot"]>;

export interface PreparedListeners {
  /** Serves the new configuration everywhere at once. The result closes sockets that are no longer wanted. */
  commit(): () => Promise<void>;
  /** Closes what was opened for the configuration. */
  rollBack(): Promise<void>;
}

/** How the sockets of one listen point are opened. */
interface Openers {
  tcp(port: number, reusePort: boolean): Promise<Transport>;
  udp(port: number, reusePort: boolean): Promise<Transport>;
}

async function openBoth(openers: Openers, port: number): Promise<Transport[]> {
  const tcp = await openers.tcp(port, false);
  try {
    return [await openers.udp(tcp.port, false), tcp];
  } catch (error) {
    await tcp.close();
    throw error;
  }
}

/** What others can stand beside: as it is, or opened again for that. The port is known to be free by now. */
async function makeShared(openers: Openers, alone: readonly Transport[]): Promise<Transport[]> {
  const open = new Set(alone);
  try {
    for (const transport of alone) {
      if (transport.share?.() === true) continue;
      open.delete(transport);
      await transport.close();
      const { name, port } = transport;
      open.add(await (name === "udp" ? openers.udp(port, true) : openers.tcp(port, true)));
    }
    return [...open];
  } catch (error) {
    await Promise.all(Array.from(open, (transport) => transport.close()));
    throw error;
  }
}

/** The sockets of a further data plane. */
async function openShared(openers: Openers, { port, udp, tcp }: ListenPlace): Promise<Transport[]> {
  const transports: Transport[] = [];
  try {
    if (udp) transports.push(await openers.udp(port, true));
    if (tcp) transports.push(await openers.tcp(port, true));
    return transports;
  } catch (error) {
    await Promise.all(transports.map((transport) => transport.close()));
    throw error;
  }
}

/** A free port that TCP got may be taken for UDP: then another one is tried. */
async function withFreePort(
  port: number,
  open: (port: number) => Promise<Transport[]>,
): Promise<Transport[]> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open(port);
    } catch (error) {
      if (port !== 0 || attempt >= 10 || !(error instanceof ListenError) || error.code !== "EADDRINUSE")
        throw error;
    }
  }
}
