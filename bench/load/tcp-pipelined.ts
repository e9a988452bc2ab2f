/** Queries over a few TCP connections at a given rate, many under way on each, and how long each answer took. */
import type { Socket } from "node:net";
import { seededRandom } from "../numbers/random.ts";
import { Arrivals } from "./arrivals.ts";
import { DurationLog } from "./duration-log.ts";
import { FrameSplitter, frame } from "./length-framing.ts";
import type { TimedLoad } from "./load-result.ts";
import type { QueryPool } from "./query-pool.ts";
import { RcodeCounter } from "./rcode-counter.ts";
import { OPEN_EVENT, openStream, type StreamTransport } from "./stream-socket.ts";

export interface TcpPipelinedOptions {
  /** Default TCP. */
  readonly transport?: StreamTransport;
  readonly queries: QueryPool;
  /** Where in the queries to begin. */
  readonly firstQuery: number;
  readonly port: number;
  /** Queries per second. */
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
  /** Milliseconds that answers may take after the last query. */
  readonly patience: number;
}

const SEED = 20_240_602;
/** Queries sent before the connections are looked at again. */
const MOST_A_TURN = 64;

export async function runTcpPipelined(options: TcpPipelinedOptions): Promise<TimedLoad> {
  const { queries, firstQuery, port, rate, seconds, patience } = options;
  const latencies = new DurationLog(rate * seconds * 1.05);
  const delays = new DurationLog(rate * seconds * 1.05);
  const rcodes = new RcodeCounter();
  let sent = 0;
  let lastSent = 0;
  let lastAnswer = 0;
  const onAnswer = (message: Uint8Array, due: number): void => {
    lastAnswer = performance.now();
    latencies.add(lastAnswer - due);
    rcodes.add(message);
  };
  const connections = Array.from(
    { length: options.connections },
    () => new PipelinedConnection(options.transport ?? "tcp", port, onAnswer),
  );
  await Promise.all(connections.map((connection) => connection.opened));

  const start = performance.now();
  const end = start + seconds * 1000;
  const arrivals = new Arrivals(start, rate, seededRandom(SEED));
  while (arrivals.due < end || (latencies.count < sent && performance.now() < lastSent + patience)) {
    const now = performance.now();
    for (let room = MOST_A_TURN; room > 0 && arrivals.due <= now && arrivals.due < end; room--) {
      connections[sent % connections.length]?.ask(queries.query(firstQuery + sent), arrivals.due);
      delays.add(now - arrivals.due);
      lastSent = now;
      arrivals.advance();
      sent++;
    }
    for (const connection of connections) connection.flush();
    await eventLoopTurn();
  }
  for (const connection of connections) connection.close();
  return {
    sent,
    answered: latencies.count,
    lost: sent - latencies.count,
    seconds: (lastAnswer - start) / 1000,
    rcodes: rcodes.byName,
    latency: latencies.percentiles(),
    sendDelay: delays.percentiles(),
  };
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const IDS = 0x10000;
const FREE = -1;

/** A connection that opens again when the server closes it; what was under way then is lost. */
class PipelinedConnection {
  /** Resolves when the first attempt to connect has worked. */
  readonly opened: Promise<void>;
  readonly #transport: StreamTransport;
  readonly #port: number;
  readonly #onAnswer: (message: Uint8Array, due: number) => void;
  readonly #dueOf: Float64Array = new Float64Array(IDS).fill(FREE);
  #socket: Socket;
  #nextId = 0;
  #closed = false;

  constructor(
    transport: StreamTransport,
    port: number,
    onAnswer: (message: Uint8Array, due: number) => void,
  ) {
    this.#transport = transport;
    this.#port = port;
    this.#onAnswer = onAnswer;
    this.#socket = this.#connect();
    const socket = this.#socket;
    this.opened = new Promise((resolve, reject) => {
      socket.once(OPEN_EVENT[transport], resolve);
      socket.once("error", reject);
    });
  }

  ask(query: Uint8Array, due: number): void {
    const id = this.#nextId++ % IDS;
    const framed = frame(query);
    framed.writeUInt16BE(id, 2);
    this.#dueOf[id] = due;
    this.#socket.cork();
    this.#socket.write(framed);
  }

  /** Sends what was asked since the last call, as one write. */
  flush(): void {
    while (this.#socket.writableCorked > 0) this.#socket.uncork();
  }

  close(): void {
    this.#closed = true;
    this.#socket.destroy();
  }

  #connect(): Socket {
    const socket = openStream(this.#transport, this.#port);
    const splitter = new FrameSplitter();
    socket.on("data", (chunk: Buffer) => splitter.push(chunk, this.#onMessage));
    // Its close event follows, and what was under way stays without answer.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      if (this.#closed) return;
      this.#dueOf.fill(FREE);
      this.#socket = this.#connect();
    });
    return socket;
  }

  readonly #onMessage = (message: Uint8Array): void => {
    const id = ((message[0] ?? 0) << 8) | (message[1] ?? 0);
    const due = this.#dueOf[id] ?? FREE;
    if (due === FREE) return;
    this.#dueOf[id] = FREE;
    this.#onAnswer(message, due);
  };
}
