/** What a follower's thread runs. */
import { parentPort, workerData } from "node:worker_threads";
import { loadInTurns } from "../run/load-in-turns.ts";

if (parentPort !== null) {
  await loadInTurns();
  const { serveThread } = await import("./serve-thread.ts");
  serveThread(parentPort, workerData);
}
