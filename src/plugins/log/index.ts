/** `log`: logs each query on a line. */
import {
  choice,
  definePlugin,
  directive,
  duration,
  merged,
  optionList,
  rest,
  single,
} from "../../plugin/index.ts";
import type { ResponseClass } from "../../plugin/query/response-type.ts";
import { type LogRule, QueryLog } from "./query-log.ts";
import { scopesAndFormat } from "./scopes-and-format.ts";

const classes = choice(["success", "denial", "error", "all"], {
  problem: (word) => `invalid Class: ${word}`,
});

export default definePlugin({
  name: "log",
  summary: "Logs each query to standard output.",
  config: merged(
    directive({
      args: { target: scopesAndFormat() },
      options: { class: optionList({ classes: rest(classes, 1) }), slower: single(duration({ min: 0 })) },
      occurrences: "each",
    }),
  ),
  create(lines, { clock, processLog }) {
    const rules = lines.flatMap(({ target, class: classLines, slower }): LogRule[] => {
      const listed = new Set(classLines.flatMap((line) => line.classes));
      const wanted: readonly ResponseClass[] = ["success", "denial", "error"];
      const isForAll = listed.has("all") || (listed.size === 0 && slower === undefined);
      const logged = isForAll ? wanted : wanted.filter((one) => listed.has(one));
      return target.scopes.map((scope) => ({ scope, format: target.format, classes: logged, slower }));
    });
    const { handle } = new QueryLog(rules, clock, processLog);
    return { handle, handleUpdate: handle, recordsOnly: true };
  },
});
