/** Queries over a few HTTP/2 connections at a given rate, and how long each answer took. */
import { type ClientHttp2Session, connect } from "node:http2";
import { seededRandom } from "../numbers/random.ts";
import { Arrivals } from "./arrivals.ts";
import { DurationLog } from "./duration-log.ts";
import type { TimedLoad } from "./load-result.ts";
import { RcodeCounter } from "./rcode-counter.ts";
import type { TcpPipelinedOptions } from "./tcp-pipelined.ts";

const SEED = 20_261_122;
/** Requests sent before the connections are looked at again. */
const MOST_A_TURN = 32;

export async function runHttp2Requests(options: TcpPipelinedOptions): Promise<TimedLoad> {
  const { queries, firstQuery, port, rate, seconds, patience } = options;
  const latencies = new DurationLog(rate * seconds * 1.05);
  const delays = new DurationLog(rate * seconds * 1.05);
  const rcodes = new RcodeCounter();
  let sent = 0;
  let lastSent = 0;
  let lastAnswer = 0;
  const sessions = Array.from({ length: options.connections }, () =>
    connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false }).on("error", () => undefined),
  );
  await Promise.all(sessions.map((session) => new Promise((resolve) => session.once("connect", resolve))));

  const ask = (session: ClientHttp2Session, query: Uint8Array, due: number): void => {
    if (session.destroyed) return;
    const stream = session.request({
      ":method": "POST",
      ":path": "/dns-query",
      "content-type": "application/dns-message",
    });
    stream.on("error", () => undefined);
    stream.once("data", (message: Buffer) => {
      lastAnswer = performance.now();
      latencies.add(lastAnswer - due);
      rcodes.add(message);
    });
    stream.end(query);
  };

  const start = performance.now();
  const end = start + seconds * 1000;
  const arrivals = new Arrivals(start, rate, seededRandom(SEED));
  while (arrivals.due < end || (latencies.count < sent && performance.now() < lastSent + patience)) {
    const now = performance.now();
    for (let room = MOST_A_TURN; room > 0 && arrivals.due <= now && arrivals.due < end; room--) {
      const session = sessions[sent % sessions.length];
      if (session !== undefined) ask(session, queries.query(firstQuery + sent), arrivals.due);
      delays.add(now - arrivals.due);
      lastSent = now;
      arrivals.advance();
      sent++;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const session of sessions) session.destroy();
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
