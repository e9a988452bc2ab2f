/** One query on each TCP connection: as fast as the server answers, or at a given rate. */
import { seededRandom } from "../numbers/random.ts";
import { Arrivals } from "./arrivals.ts";
import { DurationLog } from "./duration-log.ts";
import { FrameSplitter, frame } from "./length-framing.ts";
import type { TimedLoad } from "./load-result.ts";
import type { QueryPool } from "./query-pool.ts";
import { RcodeCounter } from "./rcode-counter.ts";
import { openStream, type StreamTransport } from "./stream-socket.ts";

export interface TcpConnectionsOptions {
  readonly transport: StreamTransport;
  readonly queries: QueryPool;
  /** Where in the queries to begin. */
  readonly firstQuery: number;
  readonly port: number;
  readonly seconds: number;
  /** Queries per second; undefined for a new connection as soon as one has its answer. */
  readonly rate: number | undefined;
  /** How many connections at a time where there is no rate. */
  readonly connections: number;
  /** Milliseconds that answers may take after the last query. */
  readonly patience: number;
}

const SEED = 20_240_603;
/** Connections at one time where a rate is given; what is due beyond that waits, which its latency shows. */
const MOST_AT_ONCE = 4_000;

export async function runTcpConnections(options: TcpConnectionsOptions): Promise<TimedLoad> {
  const { transport, queries, firstQuery, port, rate, seconds, patience } = options;
  const expected = (rate ?? 10_000) * seconds;
  const latencies = new DurationLog(expected);
  const delays = new DurationLog(expected);
  const rcodes = new RcodeCounter();
  let sent = 0;
  let open = 0;
  let lastAnswer = 0;
  const start = performance.now();
  const end = start + seconds * 1000;
  const ask = (due: number): void => {
    open++;
    delays.add(performance.now() - due);
    askOnce(transport, port, queries.query(firstQuery + sent++), (answer) => {
      open--;
      if (answer === undefined) return;
      lastAnswer = performance.now();
      latencies.add(lastAnswer - due);
      rcodes.add(answer);
    });
  };

  const arrivals = rate === undefined ? undefined : new Arrivals(start, rate, seededRandom(SEED));
  const mostAtOnce = arrivals === undefined ? options.connections : MOST_AT_ONCE;
  for (let now = start; now < end || (open > 0 && now < end + patience); now = performance.now()) {
    while (now < end && open < mostAtOnce && (arrivals === undefined || arrivals.due <= now)) {
      ask(arrivals?.due ?? performance.now());
      arrivals?.advance();
    }
    await eventLoopTurn();
  }
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

/** @param done called once, with the first message that comes, or with undefined when the connection ends before */
function askOnce(
  transport: StreamTransport,
  port: number,
  query: Uint8Array,
  done: (answer: Uint8Array | undefined) => void,
): void {
  const socket = openStream(transport, port);
  const splitter = new FrameSplitter();
  let answered = false;
  socket.on("data", (chunk: Buffer) => {
    splitter.push(chunk, (message) => {
      if (answered) return;
      answered = true;
      done(message);
      socket.destroy();
    });
  });
  // Its close event follows.
  socket.on("error", () => undefined);
  socket.once("close", () => {
    if (!answered) done(undefined);
  });
  socket.write(frame(query));
}
