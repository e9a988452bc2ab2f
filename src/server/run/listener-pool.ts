/**
 * The open DNS sockets. A configuration requests the listen points it needs. Open ones stay open, whatever
 * configuration opened them, so a reload loses no pending query.
 */

import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { hostsOverlap, isWildcardHost } from "../../lib/net/listen-address.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Random } from "../../plugin/contract/site.ts";
import type { TransportName } from "../../plugin/message/endpoint.ts";
import type { QueryStream } from "../../plugin/stream/query-stream.ts";
import { untilAccepted } from "../../transports/byte-stream-server.ts";
import { ConnectionBudget, connectionsWithin } from "../../transports/connection-budget.ts";
import type { OpenTcpSocket } from "../../transports/tcp-socket.ts";
import { ListenError, type Transport } from "../../transports/transport.ts";
import type { UdpListen } from "../../transports/udp.ts";
import { socketsOverlap } from "../configuration/listen-places.ts";
import { Crowds } from "../memory/crowds.ts";
import type { MemoryBudget } from "../memory/memory-budget.ts";
import { DnsListener } from "../serving/dns-listener.ts";
import { listenerCounters, transportCounters } from "../serving/listener-counters.ts";
import { RepeatRoom } from "../serving/repeat-room.ts";
import type { ListenerPlace } from "../serving/scheme-server.ts";
import { schemeServer } from "../serving/schemes.ts";
import { WaitingRoom } from "../serving/waiting-queries.ts";
import type { ListenPoint } from "./generation.ts";
import { Lending, Neighbours, OpenListener } from "./open-listener.ts";
import { closeAll, type ListenPlace, PointSockets, withFreePort } from "./point-sockets.ts";

export interface ListenerPoolOptions {
  readonly clock: Clock;
  readonly metrics: MetricsRegistry;
  /** Descriptors that the process may have open. */
  readonly descriptors: number;
  readonly random: Pick<Random, "unpredictable">;
  /** Where finished queries are written. */
  readonly stream?: QueryStream;
  /** Lets other processes share the same ports. */
  readonly sharesPorts?: boolean | undefined;
  /** How UDP sockets are opened. */
  readonly listenUdp: () => Promise<UdpListen>;
  /** Names another listener of the server at an address and port. */
  readonly otherListener?: ((host: string, port: number) => string | undefined) | undefined;
  /** How listening TCP sockets are made. */
  readonly tcpSockets: () => Promise<OpenTcpSocket>;
  /** Called when much of the received data of connections has become garbage. */
  onGarbage?(): void;
  /** Called once, with a message, for each bound that connections have reached. */
  readonly onCrowded?: ((text: string) => void) | undefined;
  /** Called once for a socket that was opened for one data plane alone, and cannot be shared now. */
  onUnshared?(label: string, transport: TransportName): void;
  readonly onError: (error: unknown) => void;
}

export class ListenerPool {
  readonly #open = new Map<string, OpenListener>();
  /** Listeners that no configuration needs, until their last answers are out and their sockets are closed. */
  readonly #retiring = new Map<OpenListener, Promise<void>>();
  readonly #unshared = new Set<string>();
  readonly #budget: ConnectionBudget;
  readonly #room = new WaitingRoom(() => this.#listeners());
  readonly #repeatRoom = new RepeatRoom();
  #maxWaiting: number | undefined;
  readonly #crowds: Crowds;
  readonly #options: ListenerPoolOptions;
  readonly #forgetCollector: () => void;

  constructor(options: ListenerPoolOptions) {
    this.#options = options;
    this.#crowds = new Crowds(options.descriptors, options.onCrowded);
    const repeated = options.metrics
      .gauge({
        name: "portolan_memory_repeated_bytes",
        help: "Upper limit of the memory for answers that UDP listeners repeat for a second.",
        acrossThreads: "sum",
      })
      .slot();
    this.#forgetCollector = options.metrics.onCollect(() => {
      repeated.set(this.#repeatRoom.octets);
      for (const listener of this.#listeners()) listener.countRepeated();
    });
    this.#budget = new ConnectionBudget({}, undefined, () => options.onGarbage?.());
  }

  listener(label: string): DnsListener | undefined {
    return this.#open.get(label)?.listener;
  }

  /** Pending queries. */
  get waiting(): number {
    return this.#room.size;
  }

  /** Bytes that stream connections hold: replies that clients have not read, and incomplete messages from clients. */
  get unsent(): number {
    let held = this.#budget.unsent;
    for (const { transports } of this.#open.values())
      for (const transport of transports) held += transport.held ?? 0;
    return held;
  }

  /** Sets the limits that apply from now on. */
  bound({ waiting, waitingOfAll, connections, unsent, ofSystem, garbage, takesLong }: MemoryBudget): void {
    this.#maxWaiting = waiting;
    this.#room.limit = waitingOfAll;
    this.#budget.limits = {
      ...this.#budget.limits,
      maxOctets: connections,
      maxUnsentOfAll: unsent,
      ofSystem,
      maxGarbage: garbage,
      takesLong,
    };
    for (const { listener, transports } of this.#open.values()) {
      listener.maxWaiting = waiting;
      for (const transport of transports) transport.settingsChanged?.();
    }
  }

  /** Bytes of the stream connections themselves. */
  get connections(): number {
    return this.#budget.octets;
  }

  /** Frees unused buffers. */
  relieve(): void {
    this.#budget.buffers.clear();
  }

  get labels(): readonly string[] {
    return [...this.#open.keys()];
  }

  /** The real address of a listener: port 0 has become a port once it is open. */
  address(label: string): { host: string; port: number } | undefined {
    const transport = this.#open.get(label)?.transports[0];
    return transport && { host: transport.host, port: transport.port };
  }

  /** For the other data planes: the places of the listen points that have more than one socket. */
  places(points: readonly ListenPoint[]): Map<string, ListenPlace> {
    const places = new Map<string, ListenPlace>();
    for (const { label, sockets } of points) {
      const transports = this.#open.get(label)?.transports ?? [];
      const port = transports[0]?.port;
      if (sockets === 1 || port === undefined) continue;
      const shared = transports.filter((transport) => transport.share?.() === true);
      places.set(label, { port, shared: shared.map(({ name }) => name) });
    }
    return places;
  }

  /**
   * Opens the missing listeners, and answers there at once; open listeners keep their service until {@link
   * PreparedListeners.commit}. The first data plane opens its sockets alone, so that a port in use is noticed, and
   * shares them afterwards; the others get `places` from it.
   * @throws ListenError when an address is not available; everything opened for this call is closed again
   */
  async prepare(
    points: readonly ListenPoint[],
    places?: ReadonlyMap<string, ListenPlace>,
  ): Promise<PreparedListeners> {
    const planes = Math.max(1, ...points.map(({ sockets }) => sockets));
    const own = points.filter(({ scheme }) => scheme === "https" || scheme === "grpc").length;
    this.#budget.limits = {
      ...this.#budget.limits,
      maxConnections: connectionsWithin(this.#options.descriptors, planes, own),
    };
    const wanted = new Set(points.map(({ label }) => label));
    const neighbours = new Neighbours(points);
    const opened: string[] = [];
    /** Listeners that share their port until this prepare has ended. */
    const lending = new Lending();
    /** Listeners that share their port while the configuration is in force. */
    const shared = new Set<OpenListener>();
    const endLending = (): void =>
      lending.end((open) => this.#options.sharesPorts === true || open.isShared || shared.has(open));
    try {
      for (const point of points) {
        const beside = neighbours.of(point);
        // A follower opens its sockets beside every socket here, so these share their ports while there are
        // followers.
        const isShared = point.sockets > 1 || beside.some(({ sockets }) => sockets > 1);
        const open = this.#open.get(point.label);
        if (open !== undefined) {
          if (!isShared) continue;
          shared.add(open);
          if (places === undefined) {
            // Followers open sockets beside everything that is still open here.
            await this.#untilFree(point);
            this.#lendPort(point, lending);
            this.#share(point.label, open);
          }
          continue;
        }
        await this.#untilFree(point);
        const isLent = this.#lendPort(point, lending);
        const wish = { place: places?.get(point.label), isLent, isShared: isShared || beside.length > 0 };
        const mine = await this.#openPoint(point, wish);
        if (isShared) shared.add(mine);
        this.#open.set(point.label, mine);
        if (isLent || beside.length > 0) lending.add(mine);
        opened.push(point.label);
      }
      // If none of them closes, every pair that must share a port shares it now.
      if (lending.every(({ listener }) => wanted.has(listener.label))) endLending();
    } catch (error) {
      await this.#close(opened);
      endLending();
      throw error;
    }
    return {
      commit: () => {
        const close = this.#commit(points, lending);
        for (const open of this.#open.values()) open.isShared = shared.has(open);
        return async () => {
          await close();
          endLending();
        };
      },
      rollBack: async () => {
        await this.#close(opened);
        endLending();
      },
    };
  }

  /** Accepts the waiting connections, and leaves later ones to the data planes that stay. */
  async holdBack(): Promise<void> {
    const transports = [...this.#open.values()].flatMap((open) => open.transports);
    for (const transport of transports) transport.holdBack?.();
    await untilAccepted(() => transports.reduce((sum, { accepted = 0 }) => sum + accepted, 0));
  }

  /**
   * Leaves new connections to the data planes that stay, and answers on the open ones, for `patience` milliseconds at
   * most. UDP goes on. Resolves when no connection is left.
   */
  async fadeOut(patience: number): Promise<void> {
    const transports = [...this.#open.values()].flatMap(({ transports }) => transports);
    await Promise.all(
      transports.map(async (transport) => {
        await transport.fadeOut?.(patience);
        await transport.emptied?.();
      }),
    );
  }

  /** Takes no new queries; answers to pending ones still go out. */
  pause(): void {
    for (const { transports } of this.#open.values()) for (const transport of transports) transport.pause();
  }

  async close(): Promise<void> {
    this.#forgetCollector();
    await this.#close([...this.#open.keys()]);
    await Promise.all(this.#retiring.values());
  }

  /**
   * @returns a function that closes the listeners that no configuration needs any more, to be called once they are
   * idle
   */
  #commit(points: readonly ListenPoint[], lending: Lending): () => Promise<void> {
    const wanted = new Set(points.map((point) => point.label));
    for (const point of points) this.#open.get(point.label)?.serve(point);
    const fading: OpenListener[] = [];
    const closing: OpenListener[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const [label, open] of this.#open) {
      if (wanted.has(label)) continue;
      this.#open.delete(label);
      open.listener.retire();
      this.#retiring.set(open, promise);
      void promise.then(() => this.#retiring.delete(open));
      const heir = points.find(
        (point) =>
          point.scheme === open.scheme &&
          socketsOverlap(open, point) &&
          // A listener with all addresses may have shared its port long before this reload.
          (lending.has(open) || isWildcardHost(point.host)),
      );
      // Its clients use an address that another listener has now, so they get the answers of that listener.
      if (heir !== undefined) {
        open.serve(heir);
        fading.push(open);
      } else {
        for (const transport of open.transports) transport.pause();
        closing.push(open);
      }
    }
    return async () => {
      await Promise.all([
        ...fading.map((open) => open.fadeOut()),
        ...closing.map((open) => closeAll(open.transports)),
      ]);
      resolve();
    };
  }

  /** Waits for listeners of the previous configuration that still have the port. */
  async #untilFree(point: ListenPoint): Promise<void> {
    const inTheWay = [...this.#retiring].filter(
      ([open]) =>
        open.listener.label === point.label || (open.port === point.port && socketsOverlap(open, point)),
    );
    await Promise.all(inTheWay.map(([, closed]) => closed));
  }

  /**
   * A listener whose port a new listener needs shares it: permanently where one has all addresses and the other one
   * of them (`bind`), and until the old listener has closed where the port changes hands.
   */
  #lendPort(point: ListenPoint, lending: Lending): boolean {
    let isLent = false;
    for (const open of this.#open.values()) {
      if (open.port !== point.port || !socketsOverlap(open, point)) continue;
      if (open.share(true)) isLent = true;
      lending.add(open);
    }
    return isLent;
  }

  async #openPoint(point: ListenPoint, { place, isLent, isShared }: PointWish): Promise<OpenListener> {
    const { label, scheme, host, port } = point;
    const listener = new DnsListener({
      stream: this.#options.stream,
      label,
      service: point.service,
      clock: this.#options.clock,
      counters: listenerCounters(this.#options.metrics, label),
      room: this.#room,
      seed: this.#options.random.unpredictable(),
      repeatRoom: this.#repeatRoom,
      onError: this.#options.onError,
    });
    if (this.#maxWaiting !== undefined) listener.maxWaiting = this.#maxWaiting;
    const open = new OpenListener(listener, point);
    const opener = new PointSockets(await schemeServer(scheme), this.#placeOf(label, host, open));
    if (place !== undefined) open.transports = await opener.openBeside(place);
    else {
      const reusePort = isLent || this.#options.sharesPorts === true;
      const alone = await withFreePort(port, (free) => opener.openAll(free, reusePort)).catch(
        (error: unknown) => {
          throw this.#inUse(error, point);
        },
      );
      open.transports = isShared ? await opener.shareAll(alone) : alone;
    }
    return open;
  }

  /** Names the part of this server that has the port, if it is not another program. */
  #inUse(error: unknown, point: ListenPoint): unknown {
    if (!(error instanceof ListenError && error.code === "EADDRINUSE")) return error;
    const own = [...this.#open.values()].find(
      (open) => open.port === point.port && hostsOverlap(open.host, point.host),
    );
    const holder =
      own === undefined
        ? this.#options.otherListener?.(point.host, point.port)
        : `${own.listener.label} (${own.place})`;
    if (holder === undefined) return error;
    const reason = `${holder} of this server has the port that ${point.label} (${point.place}) asks for`;
    return new ListenError(error.address, error.code, error, reason);
  }

  /** Must not hold a reference to the listen point: sockets outlive it, and would keep its whole generation alive. */
  #placeOf(label: string, host: string, open: OpenListener): ListenerPlace {
    const { clock, metrics, listenUdp, tcpSockets, onError } = this.#options;
    return {
      label,
      host,
      settings: () => open.settings,
      receiver: (transport) => open.listener.receiver(transport),
      clock,
      budget: this.#budget,
      listenUdp,
      tcpSockets,
      counters: transportCounters(metrics, label),
      onCrowded: (own) => this.#crowds.note(this.#budget, label, own),
      metrics,
      onError,
    };
  }

  *#listeners(): Generator<DnsListener> {
    for (const { listener } of this.#open.values()) yield listener;
  }

  /** Shares the open sockets with the followers. A socket that cannot be shared any more stays with this data plane. */
  #share(label: string, { transports }: OpenListener): void {
    for (const transport of transports) {
      const key = `${transport.name} ${label}`;
      if (transport.share?.() === true || this.#unshared.has(key)) continue;
      this.#unshared.add(key);
      this.#options.onUnshared?.(label, transport.name);
    }
  }

  async #close(labels: readonly string[]): Promise<void> {
    const transports: Transport[] = [];
    for (const label of labels) {
      const open = this.#open.get(label);
      transports.push(...(open?.transports ?? []));
      open?.listener.retire();
      this.#open.delete(label);
    }
    await Promise.all(transports.map((transport) => transport.close()));
  }
}

export interface PreparedListeners {
  /**
   * Serves the new configuration everywhere at once. The returned function closes sockets that are no longer needed.
   */
  commit(): () => Promise<void>;
  /** Closes the sockets opened for the configuration. */
  rollBack(): Promise<void>;
}

/** How the sockets of a listen point are to be opened. */
interface PointWish {
  /** The place of the first data plane, for a further one. */
  readonly place: ListenPlace | undefined;
  /** Whether sockets that are already open share the port. */
  readonly isLent: boolean;
  /** Whether the new sockets have to share the port. */
  readonly isShared: boolean;
}
