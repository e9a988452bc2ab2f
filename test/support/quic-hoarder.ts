/**
 * A thread whose QUIC connections ask for long answers and then read no datagram: it stops for good after its requests are sent.
 * It posts "connected", asks at the next message, posts "asked", and stops.
 */
import { once } from "node:events";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";
import { QuicCaller } from "./quic-client.ts";

export interface Hoard {
  readonly authorities: string;
  readonly port: number;
  readonly connections: number;
  /** Requests on each connection. */
  readonly requests: number;
  readonly query: Uint8Array;
}

/** Turns in which the requests go out. */
const TURNS = 3;

if (parentPort !== null) {
  const { authorities, port, connections, requests, query }: Hoard = workerData;
  const caller = await QuicCaller.open(authorities);
  const calls = [];
  for (let count = 0; count < connections; count++)
    calls.push(await caller.dial(port, "doq", "example.org").connected());
  const wanted = once(parentPort, "message");
  parentPort.postMessage("connected");
  await wanted;
  for (const call of calls) for (let count = 0; count < requests; count++) void call.ask(query);
  for (let turn = 0; turn < TURNS; turn++) await nextTurn();
  parentPort.postMessage("asked");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
