/** The entry of a follower's thread. */
import { parentPort, workerData } from "node:worker_threads";
import { loadInTurns } from "../run/load-in-turns.ts";

if (parentPort !== null) {
  await loadInTurns();
  const { serveThread } = await import("./serve-thread.ts");
  serveThread(parentPort, workerData);
}
