/** `on`: commands at start and shutdown. */
import { spawn } from "node:child_process";
import { choice, definePlugin, directive, required } from "../../plugin/index.ts";
import { commandLine } from "./command-line.ts";
import { EventCommand, StartupQueue } from "./event-command.ts";

const EVENTS = ["startup", "shutdown", "certrenew"] as const;

export default definePlugin({
  name: "on",
  summary: "Runs a command when the server starts or stops.",
  leaderOnly: true,
  config: directive({
    args: {
      event: required(
        choice(EVENTS, {
          ignoreCase: true,
          problem: (word) => `Wrong event name or event not supported: '${word}'`,
        }),
      ),
      command: commandLine(),
    },
    occurrences: "each",
    check({ event }, report, at) {
      if (event === "certrenew")
        report.warning("ON_EVENT_NEVER", at(), "'certrenew' never occurs: the command does not run");
    },
  }),
  create: ({ event, command }, site) =>
    new EventCommand(event, command, {
      log: site.processLog,
      queue: site.shared("startup", () => new StartupQueue()),
      spawn,
    }),
});
