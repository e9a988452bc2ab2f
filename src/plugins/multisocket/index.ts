/** `multisocket`: several sockets for each address, each with a thread of its own. */
import { definePlugin, directive, integer, optional, type Value, ValueProblem } from "../../plugin/index.ts";

const MAX_SOCKETS = 1024;

/** Each thread costs memory, and CPU time to start: too many take longer to start than the server waits for them. */
const THREADS_PER_PROCESSOR = 4;

const count = integer();
const sockets: Value<number> = {
  expected: `a number of sockets from 1 to ${MAX_SOCKETS}`,
  parse(word, context) {
    const number = count.parse(word, context);
    if (number instanceof ValueProblem) return new ValueProblem(`invalid num sockets: ${word}`);
    if (number < 1) return new ValueProblem(`num sockets can not be zero or negative: ${number}`);
    if (number > MAX_SOCKETS)
      return new ValueProblem(`num sockets exceeds maximum (${MAX_SOCKETS}): ${number}`);
    return number;
  },
};

export default definePlugin({
  name: "multisocket",
  summary: "Answers on several threads, each with its own sockets.",
  config: directive({ args: { num_sockets: optional(sockets) } }),
  configure({ num_sockets }, settings, { machine: { parallelism }, report, span }) {
    const wanted = num_sockets ?? parallelism;
    const most = THREADS_PER_PROCESSOR * parallelism;
    settings.sockets = Math.min(wanted, most);
    if (wanted <= most) return;
    const processors = parallelism === 1 ? "1 processor" : `${parallelism} processors`;
    report.warning(
      "MULTISOCKET_BOUNDED",
      span,
      `multisocket ${wanted} starts ${most} threads on this machine: with ${processors}, more would only use memory`,
      { expected: `at most ${most}, or no number for a thread per processor` },
    );
  },
});
