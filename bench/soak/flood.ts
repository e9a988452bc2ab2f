/** Sends the queries of a flood to a server of this machine, as fast as it answers. */
import { connect } from "node:net";
import { BATCH } from "../../src/runtime/linux/datagram-batch.ts";
import { FrameSplitter, frame } from "../load/length-framing.ts";
import { connectUdp } from "../load/udp-socket.ts";
import { type FloodKind, floodQueries } from "./flood-queries.ts";

export interface FloodOrder {
  readonly kind: FloodKind;
  readonly port: number;
  readonly seconds: number;
  readonly seed: number;
}

export interface FloodCounts {
  readonly sent: number;
  readonly answered: number;
}

/** Queries under way. */
const WINDOW = 2_000;
/** Milliseconds without an answer after which those under way are given up. */
const PATIENCE = 200;
const CONNECTIONS = 16;
/** On each connection: 16 MB of answers are under way in all. */
const PIPELINED = 16;

export function runFlood(order: FloodOrder): Promise<FloodCounts> {
  // Answers of 64 KiB come over TCP alone.
  return order.kind === "answers of 64 KiB" ? floodTcp(order) : floodUdp(order);
}

async function floodUdp({ kind, port, seconds, seed }: FloodOrder): Promise<FloodCounts> {
  const socket = await connectUdp(Uint8Array.of(127, 0, 0, 1), port);
  const queries = floodQueries(kind, seed);
  const end = performance.now() + seconds * 1000;
  let sent = 0;
  let answered = 0;
  let settled = 0;
  let heardAt = performance.now();
  while (performance.now() < end) {
    for (let room = Math.min(BATCH, WINDOW - (sent - settled)); room > 0; room--) {
      const query = queries.next().value;
      socket.sending.buffer().set(query);
      socket.sending.commit(query.length);
      sent++;
    }
    if (!socket.sending.isEmpty) socket.sending.flush();
    const count = socket.receive();
    answered += count;
    // An answer may come after its query was given up.
    settled = Math.min(sent, settled + count);
    if (count > 0) heardAt = performance.now();
    else if (sent - settled >= WINDOW) socket.wait(5);
    if (performance.now() - heardAt < PATIENCE) continue;
    settled = sent;
    heardAt = performance.now();
  }
  socket.close();
  return { sent, answered };
}

async function floodTcp({ kind, port, seconds, seed }: FloodOrder): Promise<FloodCounts> {
  const queries = floodQueries(kind, seed);
  const end = performance.now() + seconds * 1000;
  let sent = 0;
  let answered = 0;
  const run = async (): Promise<void> => {
    while (performance.now() < end) {
      const socket = connect({ port, host: "127.0.0.1" });
      const splitter = new FrameSplitter();
      // Where memory is short, a server cuts off who has much unread: that is no error here, as it would be for "once" of events.
      const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
      socket.on("error", () => socket.destroy());
      const send = (count: number): void => {
        for (let left = count; left > 0; left--) {
          socket.write(frame(queries.next().value));
          sent++;
        }
      };
      const timer = setTimeout(() => socket.destroy(), Math.max(0, end - performance.now()));
      socket.on("data", (chunk) => {
        let count = 0;
        splitter.push(chunk, () => count++);
        answered += count;
        send(count);
      });
      socket.on("connect", () => send(PIPELINED));
      await closed;
      clearTimeout(timer);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, run));
  return { sent, answered };
}
