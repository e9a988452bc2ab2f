// A load generator as a process of its own: runs one load, prints one line of JSON.
// node load/generate.ts --transport udp|tcp|tls|https|quic --port PORT --queries FILE --seconds N [--rate N] ...
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { runHttp2Requests } from "./http2-requests.ts";
import type { TimedLoad } from "./load-result.ts";
import { QueryPool } from "./query-pool.ts";
import { runTcpConnections } from "./tcp-connections.ts";
import { runTcpPipelined } from "./tcp-pipelined.ts";
import { runUdpOpenLoop } from "./udp-open-loop.ts";
import { connectUdp } from "./udp-socket.ts";

const LOOPBACK = Uint8Array.of(127, 0, 0, 1);
/** Milliseconds that answers may take after the last query. */
const PATIENCE = 1_000;

const { values } = parseArgs({
  options: {
    transport: { type: "string", default: "udp" },
    port: { type: "string", default: "" },
    queries: { type: "string", default: "" },
    seconds: { type: "string", default: "" },
    /** Queries per second; without it as fast as the server answers (one query a connection only). */
    rate: { type: "string" },
    /** TCP: how many connections at a time. */
    connections: { type: "string", default: "16" },
    "one-query-a-connection": { type: "boolean", default: false },
    /** QUIC: the certificate file of the authority that issued the server's certificate. */
    authority: { type: "string", default: "" },
    /** UDP: sleeps while nothing is due, for the sake of another process on this core. */
    sleep: { type: "boolean", default: false },
  },
});

const queries = QueryPool.fromFile(values.queries);
const port = numberOf("port", values.port);
const connections = numberOf("connections", values.connections);
const rate = values.rate === undefined ? undefined : numberOf("rate", values.rate);
const seconds = numberOf("seconds", values.seconds);

// The first load is for this process itself: its code has to be compiled before what it measures can be trusted.
const warmUp = await generate(Math.min(1, seconds), 0);
const measured = await generate(seconds, warmUp.sent);
console.log(JSON.stringify({ warmUp, measured }));

async function generate(duration: number, firstQuery: number): Promise<TimedLoad> {
  const common = { queries, firstQuery, seconds: duration, patience: PATIENCE };
  const transport = values.transport === "tls" ? "tls" : "tcp";
  if (values["one-query-a-connection"])
    return runTcpConnections({ ...common, transport, port, rate, connections });
  if (values.transport === "quic") {
    const authority = readFileSync(values.authority, "latin1");
    // Modules that use OpenSSL are loaded on demand.
    const { runQuicQueries } = await import("./quic-queries.ts");
    return runQuicQueries({ ...common, port, rate, connections, authority });
  }
  if (rate === undefined) throw new RangeError("--rate is missing");
  if (values.transport === "tcp" || values.transport === "tls")
    return runTcpPipelined({ ...common, transport, port, rate, connections });
  if (values.transport === "https") return runHttp2Requests({ ...common, port, rate, connections });
  const socket = await connectUdp(LOOPBACK, port);
  try {
    return runUdpOpenLoop(socket, { ...common, rate, idle: values.sleep ? "sleep" : "spin" });
  } finally {
    socket.close();
  }
}

function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (!(number > 0)) throw new RangeError(`--${option}: not a positive number: "${text}"`);
  return number;
}
