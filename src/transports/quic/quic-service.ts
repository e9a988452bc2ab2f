/** Serves one QUIC listener, in its own thread: parses requests, passes them on, and sends the answers. */

import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { QuicLibrary } from "../../quic/openssl/library.ts";
import { QuicServer } from "../../quic/openssl/server.ts";
import { ServerContext } from "../../quic/openssl/server-context.ts";
import type { QuicClosed, QuicConnection, QuicConnectionUser } from "../../quic/quic.ts";
import { NO_PAYLOAD, RecordWriter, readCode, readRecords } from "../../quic/records.ts";
import type { LinuxSockets } from "../../runtime/linux/linux-sockets.ts";
import { ConnectionBudget } from "../connection-budget.ts";
import { DoqConnection } from "./doq-connection.ts";
import { H3Connection } from "./h3-connection.ts";
import { Order, Report } from "./record-kinds.ts";
import { type ConnectionHome, QUIC_OCTETS, type ServedConnection } from "./served-connection.ts";
import type {
  FromQuicThread,
  QuicLimits,
  QuicSpeech,
  QuicThreadSettings,
  ToQuicThread,
} from "./thread-protocol.ts";

/** Handshakes in progress: a new one replaces the oldest. At most this share of the memory for connections is for them. */
const MAX_HANDSHAKES = 256;
const HANDSHAKES_SHARE = 0.25;
/** Octets that one client may leave unread, unless many do. */
const MAX_UNSENT_OF_ONE = 512 * 1024;
/** Connections are closed until this share of the limit is left, so that the next answer closes none. */
const LEFT_UNSENT = 0.75;
/** Each takes much CPU time. */
const HANDSHAKES_PER_SECOND = 1_000;
/** Milliseconds. */
const SWEEP_INTERVAL = 500;
/** Milliseconds for clients to read the last answers and the close frames. */
const LINGER = 1_000;
const LINGER_STEP = 10;

const ALPN: Readonly<Record<QuicSpeech, string>> = { doq: "doq", h3: "h3" };

export interface QuicServiceOptions {
  readonly library: QuicLibrary;
  readonly sockets: LinuxSockets;
  readonly settings: QuicThreadSettings;
  readonly clock: Clock;
  /** 32 unpredictable bits. */
  readonly seed: number;
  post(message: FromQuicThread, transfer?: readonly ArrayBuffer[]): void;
}

export class QuicService implements ConnectionHome {
  readonly #options: QuicServiceOptions;
  readonly #context: ServerContext;
  readonly #server: QuicServer;
  readonly #connections = new Map<number, ServedConnection>();
  readonly #handshakes = new Set<ServedConnection>();
  readonly #budget = new ConnectionBudget();
  readonly #reports = new RecordWriter();
  readonly #sweep;
  #limits: QuicLimits;
  #lastNumber = 0;
  #requests = 0;
  #held = 0;
  #isPaused = false;
  #maxHandshakes = MAX_HANDSHAKES;
  /** As last reported. */
  #reportedHeld = 0;

  /** @throws QuicUnavailable; Error if the certificate is invalid */
  constructor(options: QuicServiceOptions) {
    const { library, sockets, settings, clock } = options;
    this.#options = options;
    this.#limits = settings.limits;
    this.#context = new ServerContext(library, ALPN[settings.speech], (line) =>
      this.#report(Report.KEYS, 0, 0, Buffer.from(`${line}\n`)),
    );
    this.#context.identify(settings.identity);
    this.#server = new QuicServer({
      ...settings,
      seed: options.seed,
      library,
      sockets,
      context: this.#context,
      maxStreams: () => (this.#isPaused || this.#isFull ? 0 : this.#limits.maxStreams),
      maxHeldForPeer: () =>
        Math.min(MAX_UNSENT_OF_ONE, this.#limits.maxUnsent / Math.max(1, this.#server.holders)),
      handshakesPerSecond: HANDSHAKES_PER_SECOND,
      onConnection: (connection) => this.#welcome(connection),
      onTurnedAway: () => this.#report(Report.TURNED_AWAY, 0, 0, NO_PAYLOAD),
      onTurn: () => this.#flush(),
      onError: (error) => options.post({ kind: "error", reason: error.message }),
    });
    this.limit(settings.limits);
    this.#sweep = clock.every(SWEEP_INTERVAL, () => this.#sweepConnections());
  }

  take(message: Exclude<ToQuicThread, { kind: "close" }>): void {
    switch (message.kind) {
      case "records":
        readRecords(message.octets, (kind, connection, stream, payload) =>
          this.#obey(kind, connection, stream, payload),
        );
        this.#server.run();
        return;
      case "limit":
        this.limit(message.limits);
        return;
      case "identify":
        this.#identify(message);
        return;
      case "pause":
        this.#isPaused = true;
        for (const connection of [...this.#connections.values()]) connection.endWhenAnswered();
        this.#server.run();
    }
  }

  limit(limits: QuicLimits): void {
    this.#limits = limits;
    const { maxConnections, maxOctets } = limits;
    this.#budget.limits = { ...this.#budget.limits, maxConnections, maxOctets };
    this.#maxHandshakes = Math.ceil(Math.min(MAX_HANDSHAKES, (maxOctets * HANDSHAKES_SHARE) / QUIC_OCTETS));
  }

  /** Resolves when clients have their answers and know of the end, or after a timeout. */
  async close(): Promise<void> {
    this.#sweep.cancel();
    await this.#until(() => this.#server.held === 0);
    for (const connection of [...this.#connections.values()])
      connection.connection.finish(connection.codes.none);
    this.#server.run();
    await this.#until(() => this.#server.connections === 0);
    this.#server.close();
    this.#context.free();
  }

  now(): number {
    return this.#options.clock.turnTime();
  }

  request(connection: ServedConnection, stream: number, payload: Uint8Array): void {
    this.#requests++;
    this.#report(Report.REQUEST, connection.number, stream, payload);
  }

  settled(): void {
    const wasFull = this.#isFull;
    this.#requests--;
    if (wasFull && !this.#isFull) this.#server.touchAll();
  }

  violated(): void {
    this.#report(Report.PROTOCOL_ERROR, 0, 0, NO_PAYLOAD);
  }

  hold(octets: number): boolean {
    if (this.#held + octets > this.#limits.maxHeld) {
      this.#report(Report.TURNED_AWAY, 0, 0, NO_PAYLOAD);
      return false;
    }
    this.#held += octets;
    return true;
  }

  letGo(octets: number): void {
    this.#held -= octets;
  }

  connected(connection: ServedConnection): void {
    this.#handshakes.delete(connection);
    const { address, port } = connection.connection.peer;
    this.#report(Report.CONNECTED, connection.number, port, Buffer.from(address));
    const wasAdmitted = this.#budget.admit(connection, () =>
      this.#report(Report.TURNED_AWAY, 0, 0, NO_PAYLOAD),
    );
    if (!wasAdmitted) connection.destroy();
  }

  heardFrom(connection: ServedConnection): void {
    this.#budget.heardFrom(connection);
  }

  closed(connection: ServedConnection, _reason: QuicClosed): void {
    this.#connections.delete(connection.number);
    this.#budget.forget(connection);
    if (this.#handshakes.delete(connection)) this.#report(Report.FAILED_HANDSHAKE, 0, 0, NO_PAYLOAD);
    else this.#report(Report.CLOSED, connection.number, 0, NO_PAYLOAD);
  }

  get #isFull(): boolean {
    return this.#requests >= this.#limits.maxRequests;
  }

  /** Waits for a limited time. */
  async #until(isDone: () => boolean): Promise<void> {
    const end = this.now() + LINGER;
    while (!isDone() && this.now() < end)
      await new Promise<void>((resolve) => this.#options.clock.after(LINGER_STEP, resolve));
  }

  #welcome(connection: QuicConnection): QuicConnectionUser {
    this.#lastNumber = (this.#lastNumber + 1) % 2 ** 32;
    const Served = this.#options.settings.speech === "doq" ? DoqConnection : H3Connection;
    const served = new Served(this.#lastNumber, connection, this);
    this.#connections.set(served.number, served);
    const [oldest] = this.#handshakes;
    this.#handshakes.add(served);
    if (oldest !== undefined && this.#handshakes.size > this.#maxHandshakes) {
      this.#report(Report.TURNED_AWAY, 0, 0, NO_PAYLOAD);
      oldest.destroy();
    }
    return served;
  }

  #obey(kind: number, number: number, streamNumber: number, payload: Uint8Array): void {
    const connection = this.#connections.get(number);
    if (connection === undefined) return;
    if (kind === Order.CLOSE) {
      connection.violate(readCode(payload), "protocol error");
      return;
    }
    const stream = connection.settle(streamNumber);
    if (stream === undefined) return;
    if (kind === Order.RESET) stream.reset(readCode(payload));
    else stream.write(payload, true);
  }

  /** Closes the connections that hold the most. */
  #relieve(): void {
    const most = this.#limits.maxUnsent * LEFT_UNSENT;
    const largestFirst = [...this.#connections.values()]
      .filter(({ connection }) => connection.held > 0)
      .sort((one, other) => other.connection.held - one.connection.held);
    for (const connection of largestFirst) {
      if (this.#server.held <= most) return;
      this.#report(Report.UNREAD, 0, 0, NO_PAYLOAD);
      connection.giveUp();
    }
  }

  #identify({ identity }: Extract<ToQuicThread, { kind: "identify" }>): void {
    try {
      this.#context.identify(identity);
    } catch (error) {
      const reason = messageOf(error);
      this.#options.post({ kind: "error", reason: `QUIC cannot use this certificate: ${reason}` });
    }
  }

  #sweepConnections(): void {
    const now = this.now();
    const { readTimeout, idleTimeout } = this.#limits;
    for (const handshake of this.#handshakes) {
      if (now - handshake.since < readTimeout) break;
      handshake.connection.close(handshake.codes.excessiveLoad);
    }
    for (const connection of [...this.#connections.values()])
      if (connection.connection.isConnected) connection.sweep(now, readTimeout, idleTimeout);
    this.#reportHeld();
    this.#server.run();
  }

  #reportHeld(): void {
    const held = this.#held + this.#server.held;
    if (held === this.#reportedHeld) return;
    this.#reportedHeld = held;
    const payload = new Uint8Array(4);
    new DataView(payload.buffer).setUint32(0, Math.min(held, 0xffff_ffff));
    this.#report(Report.HELD, 0, 0, payload);
  }

  #report(kind: number, connection: number, stream: number, payload: Uint8Array): void {
    this.#reports.add(kind, connection, stream, payload);
  }

  #flush(): void {
    if (this.#server.held > this.#limits.maxUnsent) this.#relieve();
    if (this.#reports.isEmpty) return;
    const octets = this.#reports.take();
    this.#options.post({ kind: "records", octets }, [octets.buffer]);
  }
}
