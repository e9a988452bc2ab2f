// Watches answers for the cluster benchmark, in a process of its own: while it does, it does nothing else.
import { setPriority } from "node:os";
import { type AnswerWatchOptions, watchAnswers } from "./answer-watch.ts";

try {
  // It shares its core with the API, and would otherwise wait for it now and then: that would be no latency of the server.
  setPriority(-10);
} catch {
  // Not everybody may.
}
const options: AnswerWatchOptions = JSON.parse(process.argv[2] ?? "{}");
process.send?.(await watchAnswers(options));
process.disconnect();
