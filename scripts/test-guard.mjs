// Loaded before the tests. A test that ends the process would take the others with it, unseen.
import { isMainThread } from "node:worker_threads";

if (isMainThread) {
  process.exit = () => {
    throw new Error("a test, or what it tests, called process.exit()");
  };
}
