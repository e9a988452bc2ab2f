import { readFileSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { parseIpAddress } from "../../lib/ip-address.ts";
import { nodeTls } from "../../lib/node-modules.ts";
import type {
  CounterSlot,
  Handler,
  MessageSeal,
  PluginInstance,
  Query,
  Site,
  Timer,
} from "../../plugin/index.ts";
import { LineFormat } from "../../plugin/line-format.ts";
import { type ForwardedExchange, QUERY_TAP, type QueryTap } from "../../plugin/query-tap.ts";
import { FrameQueue } from "./frame-queue.ts";
import { FrameStream } from "./frame-stream.ts";
import { protocolNumber, TapType, TapWriter, transportNumber } from "./tap-message.ts";
import type { TapTarget } from "./target.ts";

export interface DnstapConfig {
  readonly target: TapTarget;
  readonly identity: string | undefined;
  readonly version: string | undefined;
  readonly extra: string | undefined;
  readonly skipverify: boolean;
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string | undefined } | undefined;
}

/** Milliseconds (CoreDNS facts 2.25). */
const FLUSH_INTERVAL = 1_000;
const TICK = 10_000;
const CONNECT_TIMEOUT = 4_000;
/** Octets that are sent before the next flush is due. */
const PORTION = 64 * 1024;
const MAX_READERS = 32;

export class Dnstap implements PluginInstance, QueryTap {
  readonly services = [QUERY_TAP.offer(this)];
  readonly #config: DnstapConfig;
  readonly #site: Site;
  readonly #queue: FrameQueue;
  readonly #writer: TapWriter;
  readonly #extra: LineFormat | undefined;
  readonly #droppedMessages: CounterSlot;
  readonly #streams = new Set<FrameStream>();
  #server: Server | undefined;
  #connecting: Socket | undefined;
  #timers: Timer[] = [];
  #reported = 0;
  #epoch = 0;
  #isRunning = false;

  constructor(config: DnstapConfig, site: Site) {
    const { identity, version, extra, target } = config;
    this.#config = config;
    this.#site = site;
    this.#queue = new FrameQueue(target.queue);
    this.#writer = new TapWriter(identity ?? site.machine.hostname, version ?? `Portolan-${site.version}`);
    this.#extra = extra === undefined || extra === "" ? undefined : new LineFormat(extra);
    this.#droppedMessages = site.metrics
      .counter({
        name: "portolan_dnstap_dropped_messages_total",
        help: "Messages that were not sent to a dnstap collector, because too many waited.",
        labels: [],
      })
      .slot();
  }

  async start(): Promise<void> {
    const { clock } = this.#site;
    const { target } = this.#config;
    this.#isRunning = true;
    this.#epoch = clock.wallTime() - clock.now();
    this.#timers = [clock.every(FLUSH_INTERVAL, () => this.#flush()), clock.every(TICK, () => this.#tick())];
    if (!target.listens) this.#connect();
    // Other threads would want the same address.
    else if (this.#site.feed.role === "leader") await this.#listen();
  }

  stop(): void {
    this.#isRunning = false;
    for (const timer of this.#timers) timer.cancel();
    this.#flush();
    for (const stream of this.#streams) stream.end();
    this.#connecting?.destroy();
    this.#server?.close();
  }

  readonly handle: Handler = (query, next) => {
    // Lookups of plugins are no queries of clients.
    if (query.root !== query || query.trace?.leavesNoMark === true) return next(query);
    this.#add(query, {
      type: TapType.CLIENT_QUERY,
      protocol: transportNumber(query.transport),
      client: query.client,
      server: undefined,
      queryTime: this.#epoch + query.receivedAt,
      responseTime: undefined,
      query: this.#config.target.full ? query.packet : undefined,
      response: undefined,
    });
    query.addSeal(new ResponseTap(this, query));
    return next(query);
  };

  /** A message to the client is complete. */
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

  forwarded({ query, upstream, port, protocol, sentAt, answeredAt, reply }: ForwardedExchange): void {
    if (query.trace?.leavesNoMark === true) return;
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
    this.#add(query, {
      ...facts,
      type: TapType.FORWARDER_RESPONSE,
      responseTime: this.#epoch + answeredAt,
      query: undefined,
      response: full ? reply : undefined,
    });
  }

  #add(query: Query, facts: Parameters<TapWriter["write"]>[0]): void {
    const extra = this.#extra === undefined ? "" : this.#extra.line(query, undefined, 0);
    const length = this.#writer.write(facts, extra);
    const before = this.#queue.dropped;
    this.#queue.add(this.#writer.octets, length);
    if (this.#queue.dropped > before) this.#droppedMessages.increment();
    if (this.#queue.length >= PORTION) this.#flush();
  }

  #flush(): void {
    if (this.#queue.length === 0) return;
    const ready = [...this.#streams].filter((stream) => stream.takesData);
    if (ready.length === 0) {
      // Readers that come later want what happens then.
      if (this.#config.target.listens && this.#streams.size === 0) this.#queue.take();
      return;
    }
    const frames = this.#queue.take();
    for (const stream of ready) stream.send(frames);
  }

  #tick(): void {
    const dropped = this.#queue.dropped - this.#reported;
    this.#reported = this.#queue.dropped;
    if (dropped > 0) this.#site.log.warning(`Dropped dnstap messages: ${dropped}`);
    if (!this.#config.target.listens && this.#streams.size === 0 && this.#connecting === undefined)
      this.#connect();
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
      if (this.#isRunning)
        this.#site.log.error(`No connection to dnstap endpoint: ${failed?.message ?? "it was closed"}`);
    });
    socket.once(isTls ? "secureConnect" : "connect", () => {
      this.#connecting = undefined;
      socket.setTimeout(0);
      this.#adopt(socket);
    });
  }

  #adopt(socket: Socket): void {
    const { target } = this.#config;
    const stream = new FrameStream(socket, target.writeBuffer, (ended) => {
      this.#streams.delete(ended);
      // One that was there is there again at once, as a rule; else the next tick tries.
      if (this.#isRunning && !target.listens) this.#connect();
    });
    this.#streams.add(stream);
  }

  async #listen(): Promise<void> {
    const { target, tls } = this.#config;
    const resolvePath = (file: string): string => this.#site.resolvePath(file);
    const accept = (socket: Socket): void => {
      if (this.#streams.size >= MAX_READERS) socket.destroy();
      else this.#adopt(socket);
    };
    const server =
      tls === undefined
        ? createServer(accept)
        : nodeTls().createServer(
            {
              cert: readFileSync(resolvePath(tls.cert)),
              key: readFileSync(resolvePath(tls.key)),
              ...(tls.ca !== undefined && { ca: readFileSync(resolvePath(tls.ca)), requestCert: true }),
            },
            accept,
          );
    this.#server = server;
    const { path, host, port } = target;
    // One that was left by a process that ended without a word.
    if (path !== "") rmSync(resolvePath(path), { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(
        path === "" ? { port, ...(host !== "" && { host }) } : { path: resolvePath(path) },
        () => {
          server.off("error", reject);
          server.on("error", (error) => this.#site.log.error(error.message));
          resolve();
        },
      );
    });
    server.unref();
  }
}

/** Looks at what the client is sent. */
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
