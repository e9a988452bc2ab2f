import { connect, type Socket } from "node:net";
import { nodeTls } from "../../lib/files/node-modules.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { LineFormat } from "../../plugin/facts/line-format.ts";
import type {
  CounterSlot,
  Handler,
  PlacedPlugin,
  PluginInstance,
  Query,
  Site,
  Timer,
} from "../../plugin/index.ts";
import type { MessageSeal } from "../../plugin/message/message-seal.ts";
import { type ForwardedExchange, QUERY_TAP, type QueryTap } from "../../plugin/services/query-tap.ts";
import { describeTlsError } from "../../upstream/encrypted/tls-words.ts";
import { FrameQueue } from "./frame-queue.ts";
import { FrameStream } from "./frame-stream.ts";
import { checkSocket, identityOf, removeSocket, type TapFiles, TapListener } from "./tap-listener.ts";
import { protocolNumber, TapType, TapWriter, transportNumber, withId } from "./tap-message.ts";
import type { TapTarget } from "./target.ts";

export interface DnstapConfig {
  readonly target: TapTarget;
  readonly identity: string | undefined;
  readonly version: string | undefined;
  readonly extra: string | undefined;
  readonly skipverify: boolean;
  readonly tls: TapFiles | undefined;
}

/** Milliseconds. */
const FLUSH_INTERVAL = 1_000;
const TICK = 10_000;
const CONNECT_TIMEOUT = 4_000;
/** Bytes that are sent before the next flush is due. */
const PORTION = 64 * 1024;

/** The fault of `dnstap listen tls://…` without `tls`. */
export const MISSING_FILES = "'dnstap listen tls://…' needs 'tls CERT KEY'";

export class Dnstap implements PluginInstance, QueryTap {
  readonly services = [QUERY_TAP.offer(this)];
  readonly #config: DnstapConfig;
  readonly #site: Site;
  readonly #queue: FrameQueue;
  readonly #writer: TapWriter;
  readonly #extra: LineFormat | undefined;
  readonly #droppedMessages: CounterSlot;
  readonly #refusedReaders: CounterSlot;
  readonly #collectors = new Set<FrameStream>();
  readonly #listeners: Map<string, TapListener>;
  #listener: TapListener | undefined;
  #connecting: Socket | undefined;
  /** Pending retry of a listener that failed to open at the start. */
  #opening: Promise<void> | undefined;
  /** Whether the listener still uses the certificate of the previous configuration. */
  #mustRenew = false;
  #timers: Timer[] = [];
  #unreported = 0;
  #epoch = 0;
  #isRunning = false;

  constructor(config: DnstapConfig, site: Site) {
    const { identity, version, extra, target } = config;
    this.#config = config;
    this.#site = site;
    this.#queue = new FrameQueue(target.queue);
    this.#listeners = site.shared("listeners", () => new Map<string, TapListener>());
    this.#writer = new TapWriter(identity ?? site.machine.hostname, version ?? `Portolan-${site.version}`);
    this.#extra = extra === undefined || extra === "" ? undefined : new LineFormat(extra);
    this.#droppedMessages = site.metrics
      .counter({
        name: "portolan_dnstap_dropped_messages_total",
        help: "Messages dropped because too many waited for a dnstap collector.",
        labels: [],
      })
      .slot();
    this.#refusedReaders = site.metrics
      .counter({
        name: "portolan_dnstap_refused_readers_total",
        help: "Readers of 'dnstap listen' refused because too many were connected.",
        labels: [],
      })
      .slot();
  }

  /** Readers stay connected if the address is unchanged. */
  inherit(predecessors: readonly PlacedPlugin[]): void {
    for (const { instance } of predecessors) {
      if (!(instance instanceof Dnstap) || instance.#listener === undefined) continue;
      if (instance.#listenKey === this.#listenKey) this.#listeners.set(this.#listenKey, instance.#listener);
    }
  }

  /** An unusable certificate or path disables the listener, but does not prevent the start. */
  examine(): void {
    try {
      this.#checkFiles();
      const { listens, path } = this.#config.target;
      if (listens && path !== "") checkSocket(this.#path(path));
    } catch (error) {
      this.#site.log.warning(`${reasonOf(error)}: no reader can connect until this is fixed`);
    }
  }

  async start(): Promise<void> {
    const { clock } = this.#site;
    const { target } = this.#config;
    this.#isRunning = true;
    this.#setEpoch();
    this.#timers = [
      clock.every(FLUSH_INTERVAL, () => {
        this.#setEpoch();
        this.#flush();
      }),
      clock.every(TICK, () => this.#tick()),
    ];
    if (!target.listens) this.#connect();
    // Only the leader listens: other threads would bind the same address.
    else if (this.#site.feed.role === "leader") {
      if (this.#lacksFiles) this.#complainOfListening(new Error(MISSING_FILES));
      else await this.#listen();
    }
  }

  started(): void {
    this.#showConfig();
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    for (const timer of this.#timers) timer.cancel();
    await this.#opening;
    this.#flush();
    this.#lost(this.#queue.frames);
    this.#connecting?.destroy();
    await Promise.all([...Array.from(this.#collectors, (stream) => stream.end()), this.#listener?.release()]);
  }

  readonly recordsOnly = true;

  readonly handle: Handler = (query, next) => {
    // Internal lookups are not queries of clients. A client's query that a plugin changed still is.
    if (query.depth > 0) return next(query);
    this.#add(query, {
      type: TapType.CLIENT_QUERY,
      protocol: transportNumber(query.transport),
      client: query.client,
      server: undefined,
      queryTime: this.#epoch + query.receivedAt,
      responseTime: undefined,
      query: this.#config.target.full ? query.root.packet : undefined,
      response: undefined,
    });
    query.addSeal(new ResponseTap(this, query));
    return next(query);
  };

  /** Called when the message for the client is complete. */
  responded(query: Query, message: Uint8Array): void {
    this.#add(query, {
      type: TapType.CLIENT_RESPONSE,
      protocol: transportNumber(query.transport),
      client: query.client,
      server: undefined,
      queryTime: this.#epoch + query.receivedAt,
      responseTime: this.#epoch + this.#site.clock.now(),
      query: undefined,
      response: this.#config.target.full ? message : undefined,
    });
  }

  forwarded(exchange: ForwardedExchange): void {
    const { query, upstream, port, protocol, sentAt, endedAt, reply } = exchange;
    if (query.trace?.leavesNoMark === true || !exchange.wasSent) return;
    const octets = parseIpAddress(upstream);
    const facts = {
      protocol: protocolNumber(protocol),
      client: undefined,
      server: octets === undefined ? undefined : { octets, port },
      queryTime: this.#epoch + sentAt,
    };
    const { full } = this.#config.target;
    this.#add(query, {
      ...facts,
      type: TapType.FORWARDER_QUERY,
      responseTime: undefined,
      query: full ? query.packet : undefined,
      response: undefined,
    });
    if (reply === undefined) return;
    this.#add(query, {
      ...facts,
      type: TapType.FORWARDER_RESPONSE,
      responseTime: this.#epoch + endedAt,
      query: undefined,
      response: full ? withId(reply, query.id) : undefined,
    });
  }

  #add(query: Query, facts: Parameters<TapWriter["write"]>[0]): void {
    const extra = this.#extra === undefined ? "" : this.#extra.line(query, undefined, 0);
    const length = this.#writer.write(facts, extra);
    if (!this.#queue.add(this.#writer.octets, length)) this.#lost(1);
    if (this.#queue.length >= PORTION) this.#flush();
  }

  #lost(messages: number): void {
    this.#unreported += messages;
    this.#droppedMessages.add(messages);
  }

  /** The machine's clock may be set, or run at a different rate than the process's own. */
  #setEpoch(): void {
    const { clock } = this.#site;
    this.#epoch = clock.wallTime() - clock.now();
  }

  get #streams(): ReadonlySet<FrameStream> {
    return this.#listener?.streams ?? this.#collectors;
  }

  #flush(): void {
    if (this.#queue.length === 0) return;
    const streams = this.#streams;
    const open = [...streams].filter((stream) => stream.isOpen);
    const ready = open.filter((stream) => stream.takesData);
    if (ready.length === 0) {
      // Later readers want later messages only.
      if (this.#config.target.listens && streams.size === 0) this.#queue.take();
      return;
    }
    // A slow reader loses messages, so that the others do not wait for it.
    this.#lost((open.length - ready.length) * this.#queue.frames);
    const frames = this.#queue.take();
    for (const stream of ready) stream.send(frames);
  }

  #tick(): void {
    if (this.#unreported > 0) this.#site.log.warning(`Dropped dnstap messages: ${this.#unreported}`);
    this.#unreported = 0;
    if (this.#config.target.listens) this.#listenAgain();
    else if (this.#collectors.size === 0 && this.#connecting === undefined) this.#connect();
  }

  #connect(): void {
    const { target, skipverify } = this.#config;
    const { path, host, port, isTls } = target;
    const place = path === "" ? { host, port } : { path: this.#site.resolvePath(path) };
    const socket = isTls
      ? nodeTls().connect({
          host,
          port,
          rejectUnauthorized: !skipverify,
          ...(parseIpAddress(host) === undefined && { servername: host }),
        })
      : connect(place);
    this.#connecting = socket;
    socket.setTimeout(CONNECT_TIMEOUT, () => socket.destroy(new Error("no connection within 4 s")));
    socket.unref();
    let failed: Error | undefined;
    socket.once("error", (error) => {
      failed = error;
    });
    socket.once("close", () => {
      if (this.#connecting !== socket) return;
      this.#connecting = undefined;
      if (!this.#isRunning) return;
      this.#complain(failed === undefined ? "it was closed" : (describeTlsError(failed) ?? failed.message));
    });
    socket.once(isTls ? "secureConnect" : "connect", () => {
      this.#connecting = undefined;
      socket.setTimeout(0);
      this.#adopt(socket);
    });
  }

  #complain(reason: string): void {
    this.#site.log.error(`No connection to dnstap endpoint ${this.#config.target.text}: ${reason}`);
  }

  #adopt(socket: Socket): void {
    const { target } = this.#config;
    const stream = new FrameStream(socket, {
      writeBuffer: () => target.writeBuffer,
      clock: this.#site.clock,
      onEnd: () => {
        this.#collectors.delete(stream);
        if (this.#isRunning && stream.failure !== undefined) this.#complain(stream.failure);
        // A lost collector usually returns at once; otherwise the next tick tries again.
        if (this.#isRunning && stream.age >= FLUSH_INTERVAL) this.#connect();
      },
    });
    this.#collectors.add(stream);
  }

  /** Readers stay connected if this is unchanged. */
  get #listenKey(): string {
    const { path, host, port, isTls } = this.#config.target;
    return JSON.stringify([this.#path(path), host, port, isTls]);
  }

  /** Whether this is a TLS listener without a certificate. Only another Corefile can change that. */
  get #lacksFiles(): boolean {
    const { tls, target } = this.#config;
    return target.listens && target.isTls && tls === undefined;
  }

  async #listen(): Promise<void> {
    const key = this.#listenKey;
    const { target } = this.#config;
    const { clock, log } = this.#site;
    const known = this.#listeners.get(key);
    if (known !== undefined) {
      this.#listener = known;
      known.hold();
      return;
    }
    const path = this.#path(target.path);
    try {
      if (path !== "") removeSocket(path);
      const files = this.#files();
      const opened = await TapListener.open({
        target,
        path,
        files,
        clock,
        log,
        refused: this.#refusedReaders,
      });
      opened.hold();
      this.#listener = opened;
      this.#listeners.set(key, opened);
    } catch (error) {
      this.#complainOfListening(error);
    }
  }

  #listenAgain(): void {
    if (this.#site.feed.role !== "leader" || this.#opening !== undefined || this.#lacksFiles) return;
    if (this.#listener !== undefined) {
      if (this.#mustRenew) this.#showConfig();
      return;
    }
    this.#opening = this.#listen()
      .catch((error: unknown) => this.#complainOfListening(error))
      .finally(() => {
        this.#opening = undefined;
      });
  }

  /**
   * The listener may be from the previous configuration. If the new certificate is unusable, readers still see the
   * old one.
   */
  #showConfig(): void {
    const listener = this.#listener;
    if (listener === undefined) return;
    listener.writeBuffer = this.#config.target.writeBuffer;
    const files = this.#files();
    if (files === undefined) return;
    try {
      listener.renew(files);
      this.#mustRenew = false;
    } catch (error) {
      this.#mustRenew = true;
      this.#complainOfListening(error);
    }
  }

  #complainOfListening(error: unknown): void {
    this.#site.log.error(`No dnstap readers at ${this.#config.target.text}: ${reasonOf(error)}`);
  }

  /** @throws SetupError */
  #checkFiles(): void {
    const files = this.#files();
    if (files !== undefined) identityOf(files);
  }

  #path(path: string): string {
    return path === "" ? "" : this.#site.resolvePath(path);
  }

  #files(): TapFiles | undefined {
    const { tls, target } = this.#config;
    if (tls === undefined || !target.isTls) return undefined;
    const [cert, key] = [this.#path(tls.cert), this.#path(tls.key)];
    return { cert, key, ca: tls.ca === undefined ? undefined : this.#path(tls.ca) };
  }
}

function reasonOf(error: unknown): string {
  return messageOf(error);
}

/** Copies the messages that clients get. */
class ResponseTap implements MessageSeal {
  readonly room = 0;
  readonly #tap: Dnstap;
  readonly #query: Query;

  constructor(tap: Dnstap, query: Query) {
    this.#tap = tap;
    this.#query = query;
  }

  seal(bytes: Uint8Array, length: number): number {
    this.#tap.responded(this.#query, bytes.subarray(0, length));
    return length;
  }
}
