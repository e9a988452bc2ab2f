/**
 * A QUIC listener as the rest of the server sees it. The socket is opened here; its own thread reads it, so that neither handshakes
 * nor crashes disturb other listeners. A thread that ends unexpectedly is replaced.
 */

import { Worker } from "node:worker_threads";
import { programModule } from "../../lib/files/program-files.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import type { Endpoint, TransportName } from "../../plugin/message/endpoint.ts";
import { QuicUnavailable } from "../../quic/availability.ts";
import type { QuicIdentity } from "../../quic/openssl/server-context.ts";
import { RecordWriter, readCode, readRecords } from "../../quic/records.ts";
import { NoForeignFunctions } from "../../runtime/linux/libc.ts";
import { type LinuxSockets, linuxSockets } from "../../runtime/linux/linux-sockets.ts";
import {
  readAddress,
  readLocalName,
  readPort,
  SOCKET_ADDRESS_OCTETS,
} from "../../runtime/linux/socket-address.ts";
import { ReportedEndpoint, unspecifiedEndpoint } from "../endpoint.ts";
import type { ListenTarget, Transport } from "../transport.ts";
import { openUdpSocket, setReusePort, type UdpSocket } from "../udp-socket.ts";
import { Report } from "./record-kinds.ts";
import type {
  FromQuicThread,
  QuicLimits,
  QuicSpeech,
  QuicThreadSettings,
  ToQuicThread,
} from "./thread-protocol.ts";

/** A client's connection, for its requests. */
export interface QuicClient {
  readonly number: number;
  readonly endpoint: Endpoint;
}

/** Sends the answers to requests, from any turn. */
export interface QuicReplies {
  readonly local: Endpoint;
  order(kind: number, client: QuicClient, stream: number, payload: Uint8Array): void;
}

export interface QuicCounters {
  readonly protocolError: () => void;
  readonly turnedAway: () => void;
  readonly unread: () => void;
  readonly failedHandshake: () => void;
}

export interface QuicListenOptions {
  readonly name: TransportName;
  readonly speech: QuicSpeech;
  readonly clock: Clock;
  readonly reusePort: boolean;
  readonly limits: () => QuicLimits;
  readonly identity: () => QuicIdentity | undefined;
  readonly onKeys: (line: Uint8Array) => void;
  readonly counters: QuicCounters;
  readonly onError: (error: unknown) => void;
  /** Receives a request of a client. The octets stay valid. */
  readonly onRequest: (client: QuicClient, stream: number, payload: Uint8Array, replies: QuicReplies) => void;
}

/** Milliseconds before a thread that ended is replaced: initial and maximum. */
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 60_000;
/** Milliseconds after which it counts as stable. */
const STEADY = 60_000;
/** The thread keeps its data outside of V8's heap. */
const YOUNG_MEGABYTES = 8;
/** Milliseconds for a thread to end. */
const LAST_MOMENT = 5_000;

/**
 * @throws QuicUnavailable if OpenSSL's QUIC is not available
 * @throws ListenError
 */
export async function listenQuic(target: ListenTarget, options: QuicListenOptions): Promise<QuicTransport> {
  const sockets = await linuxSockets();
  if (sockets instanceof NoForeignFunctions)
    throw new QuicUnavailable(`QUIC needs system calls through koffi: ${sockets.message}`);
  const transport = new QuicTransport(sockets, target, options);
  await transport.start();
  return transport;
}

export class QuicTransport implements Transport, QuicReplies {
  readonly name: TransportName;
  readonly host: string;
  readonly port: number;
  readonly local: Endpoint;
  /** Called when the settings in force have changed. */
  onSettings: (() => void) | undefined;
  /** Octets that its thread holds for clients, as the thread last reported (every half second). */
  held = 0;
  /** Called when it is closed. */
  onClose: (() => void) | undefined;
  readonly #sockets: LinuxSockets;
  readonly #options: QuicListenOptions;
  readonly #orders = new RecordWriter();
  readonly #clients = new Map<number, QuicClient>();
  readonly #isWildcard: boolean;
  /** See `ListenTarget`. */
  readonly #wantedHost: string;
  #socket: UdpSocket | undefined;
  #worker: Worker | undefined;
  #ended: Promise<void> | undefined;
  #isReading = false;
  #isScheduled = false;
  #isClosed = false;
  #isShared: boolean;
  #failures = 0;
  #restart: Timer | undefined;

  constructor(sockets: LinuxSockets, target: ListenTarget, options: QuicListenOptions) {
    this.name = options.name;
    this.#sockets = sockets;
    this.#options = options;
    this.#isShared = options.reusePort;
    this.#wantedHost = target.host;
    this.#socket = openUdpSocket(sockets.libc, target, { reusePort: options.reusePort });
    const name = new Uint8Array(SOCKET_ADDRESS_OCTETS);
    readLocalName(sockets.libc, this.#socket.fd, name);
    this.host = readAddress(name, 0);
    this.port = readPort(name, 0);
    this.#isWildcard = this.host === "::" || this.host === "0.0.0.0";
    this.local = this.#isWildcard
      ? unspecifiedEndpoint(this.port)
      : new ReportedEndpoint(this.host, this.port);
  }

  /** @throws QuicUnavailable; Error if the thread does not start */
  async start(): Promise<void> {
    const { speech, limits, identity } = this.#options;
    const { fd, family } = this.#socket as UdpSocket;
    const settings: QuicThreadSettings = {
      speech,
      fd,
      family,
      isWildcard: this.#isWildcard,
      limits: limits(),
      identity: identity(),
    };
    const startedAt = this.#options.clock.now();
    const worker = new Worker(programModule("transports/quic/thread-main"), {
      workerData: settings,
      name: `portolan-${this.name}`,
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEGABYTES },
    });
    const started = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    let fault = "it ended";
    worker.on("message", (message: FromQuicThread) => {
      if (message.kind === "ready") started.resolve();
      else if (message.kind === "refused") started.reject(new QuicUnavailable(message.reason));
      else this.#hear(message);
    });
    worker.on("error", (error: unknown) => {
      fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    worker.once("exit", () => {
      this.#clients.clear();
      this.held = 0;
      ended.resolve();
      started.reject(new QuicUnavailable(`the thread for QUIC does not start: ${fault}`));
      if (this.#worker === worker) this.#lost(fault, startedAt);
    });
    try {
      await started.promise;
    } catch (error) {
      await worker.terminate();
      this.#closeSocket();
      throw error;
    }
    // From here on the thread owns the socket and closes it.
    this.#worker = worker;
    this.#ended = ended.promise;
  }

  share(on = true): boolean {
    const socket = this.#socket;
    if (socket === undefined || this.#isClosed) return false;
    this.#isShared = on;
    return setReusePort(this.#sockets.libc, socket.fd, on);
  }

  /** The settings in force have changed. */
  settingsChanged(): void {
    this.#tell({ kind: "limit", limits: this.#options.limits() });
    this.onSettings?.();
  }

  identityChanged(): void {
    this.#tell({ kind: "identify", identity: this.#options.identity() });
  }

  pause(): void {
    this.#tell({ kind: "pause" });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.onClose?.();
    this.#restart?.cancel();
    this.#flush();
    const worker = this.#worker;
    this.#worker = undefined;
    if (worker === undefined) {
      this.#closeSocket();
      return;
    }
    worker.postMessage({ kind: "close" } satisfies ToQuicThread);
    const timer = this.#options.clock.after(LAST_MOMENT, () => void worker.terminate());
    await this.#ended;
    timer.cancel();
    this.#socket = undefined;
  }

  order(kind: number, client: QuicClient, stream: number, payload: Uint8Array): void {
    // The next thread does not know the numbers of the previous one.
    if (this.#clients.get(client.number) !== client) return;
    this.#orders.add(kind, client.number, stream, payload);
    if (this.#isReading || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #hear(message: Exclude<FromQuicThread, { kind: "ready" | "refused" }>): void {
    if (message.kind === "error") {
      this.#options.onError(new Error(message.reason));
      return;
    }
    this.#isReading = true;
    try {
      readRecords(message.octets, (kind, number, stream, payload) =>
        this.#read(kind, number, stream, payload),
      );
    } finally {
      this.#isReading = false;
    }
    this.#flush();
  }

  #read(kind: number, number: number, stream: number, payload: Uint8Array): void {
    const { counters, onKeys, onRequest } = this.#options;
    switch (kind) {
      case Report.REQUEST: {
        const client = this.#clients.get(number);
        if (client !== undefined) onRequest(client, stream, payload, this);
        return;
      }
      case Report.CONNECTED: {
        const address = Buffer.from(payload).toString();
        this.#clients.set(number, { number, endpoint: new ReportedEndpoint(address, stream) });
        return;
      }
      case Report.CLOSED:
        this.#clients.delete(number);
        return;
      case Report.PROTOCOL_ERROR:
        counters.protocolError();
        return;
      case Report.TURNED_AWAY:
        counters.turnedAway();
        return;
      case Report.UNREAD:
        counters.unread();
        return;
      case Report.FAILED_HANDSHAKE:
        counters.failedHandshake();
        return;
      case Report.HELD:
        this.held = readCode(payload);
        return;
      case Report.KEYS:
        onKeys(payload);
    }
  }

  #flush(): void {
    if (this.#orders.isEmpty) return;
    const octets = this.#orders.take();
    this.#worker?.postMessage({ kind: "records", octets } satisfies ToQuicThread, [octets.buffer]);
  }

  #tell(message: ToQuicThread): void {
    this.#flush();
    this.#worker?.postMessage(message);
  }

  #lost(reason: string, startedAt: number): void {
    this.#worker = undefined;
    this.#socket = undefined;
    if (this.#options.clock.now() - startedAt >= STEADY) this.#failures = 0;
    this.#options.onError(new Error(`the thread of a QUIC listener ended; starting another: ${reason}`));
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#failures++);
    this.#restart = this.#options.clock.after(pause, () => void this.#replace());
  }

  async #replace(): Promise<void> {
    const startedAt = this.#options.clock.now();
    try {
      const target = { host: this.#wantedHost, port: this.port };
      this.#socket = openUdpSocket(this.#sockets.libc, target, { reusePort: this.#isShared });
      await this.start();
    } catch (error) {
      if (!this.#isClosed) this.#lost(messageOf(error), startedAt);
    }
  }

  /** While no thread owns it. */
  #closeSocket(): void {
    if (this.#socket !== undefined) this.#sockets.libc.close(this.#socket.fd);
    this.#socket = undefined;
  }
}
