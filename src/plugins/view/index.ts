/** `view`: restricts a server block to some clients. */

import type { Directive } from "../../corefile/tree.ts";
import type { Expression } from "../../expression/expression.ts";
import { INVALID } from "../../plugin/config/arguments.ts";
import type { Option } from "../../plugin/config/options.ts";
import { readExpression } from "../../plugin/config/source-text.ts";
import { QUERY_ENVIRONMENT } from "../../plugin/facts/query-environment.ts";
import { definePlugin, directive, type Query, required, text } from "../../plugin/index.ts";
import { makeView } from "./view.ts";

/** Lines with one expression each. */
const expressions: Option<readonly Expression<Query>[]> = {
  usage: "EXPRESSION",
  read(lines: readonly Directive[], { report }) {
    const read = lines.map(({ name, args, block }) => {
      if (args.length > 0 && block === undefined)
        return readExpression(args, QUERY_ENVIRONMENT, report, "could not compile expression");
      const message = `Wrong argument count or unexpected line ending after '${name.text}'`;
      report.error("PLUGIN_ARGUMENT_MISSING", name.span, message, {
        expected: "an expression such as incidr(client_ip(), '10.0.0.0/8')",
      });
      return undefined;
    });
    const valid = read.filter((expression) => expression !== undefined);
    return valid.length === lines.length ? valid : INVALID;
  },
};

export default definePlugin({
  name: "view",
  summary:
    "Selects the queries of a server block by an expression, so that different clients get different answers.",
  config: directive({
    args: { name: required(text("the name of the view")) },
    options: { expr: expressions },
  }),
  create: ({ name, expr }) => makeView(name, expr),
});
