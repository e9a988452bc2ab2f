// Loaded before the tests. A test that ends the process would take the others with it, unseen; an error that nothing listens to should name
// what opened the connection.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { isMainThread } from "node:worker_threads";
import { watchOpened } from "./lib/opened.mjs";

/** Milliseconds. */
const INTERVAL = 100;

if (isMainThread) {
  process.exit = () => {
    throw new Error("a test, or what it tests, called process.exit()");
  };
  watchOpened();
  const limit = Number(process.env.PORTOLAN_TEST_MEMORY);
  if (limit > 0) collectAbove(limit);
}

/**
 * V8 does not count shared memory, and caches are made of it: the caches of finished tests would stay for minutes.
 * @param {number} limit bytes of shared memory above which unreferenced buffers are freed
 */
function collectAbove(limit) {
  setFlagsFromString("--expose-gc");
  /** @type {() => void} */
  const collect = runInNewContext("gc");
  let next = limit;
  setInterval(() => {
    if (process.memoryUsage().arrayBuffers < next) return;
    collect();
    // What is in use is no reason to look for what is not.
    next = Math.max(limit, 2 * process.memoryUsage().arrayBuffers);
  }, INTERVAL).unref();
}
