// Runs inside of a measured server (NODE_OPTIONS=--import): notes how long turns of its event loop and collections took.
import { appendFileSync } from "node:fs";
import { PerformanceObserver, performance } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const file = process.env.BENCH_PAUSES;
if (file !== undefined && isMainThread) {
  let collection = 0;
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) collection = Math.max(collection, duration);
  }).observe({ entryTypes: ["gc"] });
  let turn = 0;
  let processor = 0;
  let since = readClocks();
  // From one turn's immediates to those of the next: all that may happen between two looks at the sockets, without the time for which poll
  // waited. The interval of `monitorEventLoopDelay` would tell that to a millisecond, and nothing of who else had the processor.
  const look = () => {
    setImmediate(look).unref();
    const now = readClocks();
    turn = Math.max(turn, now.wall - since.wall - (now.idle - since.idle));
    processor = Math.max(processor, now.processor - since.processor);
    since = now;
  };
  setImmediate(look).unref();
  setInterval(() => {
    appendFileSync(file, `${JSON.stringify({ turn, processor, collection })}\n`);
    turn = processor = collection = 0;
  }, 500).unref();
}

/** Milliseconds: by the clock, of these without work, and of this thread on a processor. */
function readClocks() {
  const { user, system } = process.threadCpuUsage();
  return {
    wall: performance.now(),
    idle: performance.nodeTiming.idleTime,
    processor: (user + system) / 1000,
  };
}
