/** `multisocket`: several sockets for each address, each with a thread that answers there (CoreDNS facts 2.11). */
import { definePlugin, directive, integer, optional, type Value, ValueProblem } from "../../plugin/index.ts";

const MAX_SOCKETS = 1024;

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
  configure({ num_sockets }, settings, { machine }) {
    settings.sockets = num_sockets ?? machine.parallelism;
  },
});
