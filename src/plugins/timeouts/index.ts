/** `timeouts`: limits the duration of connections. */
import { definePlugin, directive, duration, single, type Value, ValueProblem } from "../../plugin/index.ts";

const HOUR = 3_600_000;

const timeout: Value<number> = duration({
  min: 1_000,
  max: 24 * HOUR,
  bareSeconds: true,
  problem: (word) => `timeout provided '${word}' needs to be between 1 second and 24 hours`,
});

const queryLimit: Value<number> = {
  expected: "a number of queries, or -1 for no limit",
  parse(word) {
    const limit = /^[+-]?\d+$/.test(word) ? Number(word) : Number.NaN;
    if (limit === -1 || limit >= 1) return limit;
    return new ValueProblem(`maxtcpqueries provided '${word}' needs to be -1 or a positive number`);
  },
};

export default definePlugin({
  name: "timeouts",
  summary: "Sets timeouts for client connections.",
  config: directive({
    options: {
      read: single(timeout),
      write: single(timeout),
      idle: single(timeout),
      maxtcpqueries: single(queryLimit),
    },
    occurrences: "each",
    check({ read, write, idle, maxtcpqueries }, report, at) {
      if (read !== undefined || write !== undefined || idle !== undefined || maxtcpqueries !== undefined)
        return;
      report.error("PLUGIN_EMPTY", at(), "timeouts block with no timeouts specified", {
        expected: "at least one of read, write, idle, maxtcpqueries",
      });
    },
  }),
  configure({ read, write, idle, maxtcpqueries }, settings) {
    settings.readTimeout = read ?? settings.readTimeout;
    settings.writeTimeout = write ?? settings.writeTimeout;
    settings.idleTimeout = idle ?? settings.idleTimeout;
    settings.maxTcpQueries = maxtcpqueries ?? settings.maxTcpQueries;
  },
});
