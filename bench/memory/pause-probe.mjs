// Runs inside of a measured server (NODE_OPTIONS=--import): notes how long turns of its event loop and collections took.
import { appendFileSync } from "node:fs";
import { monitorEventLoopDelay, PerformanceObserver } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const file = process.env.BENCH_PAUSES;
if (file !== undefined && isMainThread) {
  let collection = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collection = Math.max(collection, duration);
  }).observe({ entryTypes: ["gc"] });
  const turns = monitorEventLoopDelay({ resolution: 1 });
  turns.enable();
  setInterval(() => {
    // The monitor's own interval of a millisecond is part of what it sees.
    const turn = Math.max(0, turns.max / 1e6 - 1);
    turns.reset();
    appendFileSync(file, `${JSON.stringify({ turn, collection })}\n`);
    collection = 0;
  }, 500).unref();
}
