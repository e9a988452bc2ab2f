/** Queries over a few QUIC connections, at a given rate or as fast as they are answered, and how long each answer took. */

import { QuicDialler } from "../../src/quic/openssl/client.ts";
import { ClientContext } from "../../src/quic/openssl/client-context.ts";
import { loadQuicLibrary } from "../../src/quic/openssl/library.ts";
import type { QuicConnection, QuicConnectionUser } from "../../src/quic/quic.ts";
import { linuxSockets } from "../../src/runtime/linux/linux-sockets.ts";
import { seededRandom } from "../numbers/random.ts";
import { Arrivals } from "./arrivals.ts";
import { DurationLog } from "./duration-log.ts";
import type { TimedLoad } from "./load-result.ts";
import { RcodeCounter } from "./rcode-counter.ts";
import type { TcpPipelinedOptions } from "./tcp-pipelined.ts";

export interface QuicQueriesOptions extends Omit<TcpPipelinedOptions, "rate" | "transport"> {
  /** Queries per second; as fast as they are answered without it. */
  readonly rate: number | undefined;
  /** PEM; who issued the server's certificate. */
  readonly authority: string;
}

const SEED = 20_261_122;
const MOST_A_TURN = 32;
/** Queries under way on each connection where there is no rate. */
const STREAMS = 16;

export async function runQuicQueries(options: QuicQueriesOptions): Promise<TimedLoad> {
  const { queries, firstQuery, port, rate, seconds, patience } = options;
  const latencies = new DurationLog((rate ?? 50_000) * seconds * 1.05);
  const delays = new DurationLog((rate ?? 50_000) * seconds * 1.05);
  const rcodes = new RcodeCounter();
  let sent = 0;
  let lastSent = 0;
  let lastAnswer = 0;
  const dialler = await quicDialler();
  const context = new ClientContext(dialler.library, { authorities: options.authority });
  const connections = await Promise.all(
    Array.from({ length: options.connections }, () => connected(dialler, context, port)),
  );

  const ask = (connection: QuicConnection, query: Uint8Array, due: number): boolean => {
    let isAnswered = false;
    const stream = connection.openStream(false, {
      received(octets) {
        if (isAnswered || octets.length < 2) return;
        isAnswered = true;
        lastAnswer = performance.now();
        latencies.add(lastAnswer - due);
        rcodes.add(octets.subarray(2));
      },
      lost: () => undefined,
    });
    if (stream === undefined) return false;
    const framed = new Uint8Array(2 + query.length);
    framed[1] = query.length;
    framed.set(query, 2);
    // DNS over QUIC has no ids.
    framed.fill(0, 2, 4);
    stream.write(framed, true);
    sent++;
    return true;
  };

  const start = performance.now();
  const end = start + seconds * 1000;
  const arrivals = rate === undefined ? undefined : new Arrivals(start, rate, seededRandom(SEED));
  const isOver = (now: number): boolean => (arrivals === undefined ? now >= end : arrivals.due >= end);
  while (!isOver(performance.now()) || (latencies.count < sent && performance.now() < lastSent + patience)) {
    const now = performance.now();
    for (let room = MOST_A_TURN; room > 0 && !isOver(now); room--) {
      const isDue =
        arrivals === undefined ? sent - latencies.count < STREAMS * connections.length : arrivals.due <= now;
      const connection = connections[sent % connections.length];
      if (!isDue || connection === undefined) break;
      const due = arrivals?.due ?? now;
      if (!ask(connection, queries.query(firstQuery + sent), due)) break;
      delays.add(now - due);
      lastSent = now;
      arrivals?.advance();
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  dialler.close();
  context.free();
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

async function quicDialler(): Promise<QuicDialler> {
  const library = await loadQuicLibrary();
  const sockets = await linuxSockets();
  if (sockets instanceof Error) throw sockets;
  return new QuicDialler(library, sockets);
}

function connected(dialler: QuicDialler, context: ClientContext, port: number): Promise<QuicConnection> {
  return new Promise((resolve, reject) => {
    const connection = dialler.dial(
      { peer: { address: "127.0.0.1", port }, protocol: "doq", context },
      (): QuicConnectionUser => ({
        connected: () => resolve(connection),
        accepted: () => ({ received: () => undefined, lost: () => undefined }),
        closed: ({ text }) => reject(new Error(`the QUIC connection ended: ${text}`)),
      }),
    );
  });
}
