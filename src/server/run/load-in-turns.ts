/**
 * Loads the server in pieces, leaves first, with a turn of the event loop for each: V8 takes several milliseconds to
 * compile and run a piece.
 */
import { setImmediate as nextTurn } from "node:timers/promises";

export async function loadInTurns(): Promise<void> {
  await import("../../dns/resource-record.ts");
  await nextTurn();
  await import("../../dns/index.ts");
  await nextTurn();
  await import("../../lib/logging/log.ts");
  await nextTurn();
  await import("../../plugin/stream/query-stream.ts");
  await nextTurn();
  await import("../../transports/udp.ts");
  await nextTurn();
  await import("./data-plane.ts");
  await nextTurn();
}
