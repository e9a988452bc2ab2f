// Watches answers for the cluster benchmark, in a process of its own: while it does, it does nothing else.
import { type AnswerWatchOptions, watchAnswers } from "./answer-watch.ts";

const options: AnswerWatchOptions = JSON.parse(process.argv[2] ?? "{}");
process.send?.(await watchAnswers(options));
process.disconnect();
