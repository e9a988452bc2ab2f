/** `chaos`: data about this server in records of class CH. */
import { definePlugin, directive, merged, optional, rest, text } from "../../plugin/index.ts";
import { ChaosFacts } from "./server-facts.ts";

const DEFAULT_AUTHORS = ["Portolan authors"];

export default definePlugin({
  name: "chaos",
  summary: "Answers CH queries for the version, host name and authors of the server.",
  config: merged(
    directive({ args: { version: optional(text()), authors: rest(text()) }, occurrences: "each" }),
  ),
  allClasses: true,
  configure(lines, _settings, { report, span }) {
    if (lines.length < 2) return;
    const message = `'chaos' appears ${lines.length} times: only the first counts`;
    report.warning("PLUGIN_REPEATED", span, message);
  },
  create([first], { version, machine, random }) {
    const authors = first?.authors ?? [];
    const facts = new ChaosFacts(
      {
        version: first?.version ?? `Portolan-${version}`,
        hostname: machine.hostname || "localhost",
        authors: authors.length > 0 ? authors : DEFAULT_AUTHORS,
      },
      random,
    );
    return { handle: facts.handle };
  },
});
