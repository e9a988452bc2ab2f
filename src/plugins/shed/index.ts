/** `shed`: counts queries that are dropped under load, in metrics of CoreDNS. */
import type { Token } from "../../corefile/tokens.ts";
import type { Directive } from "../../corefile/tree.ts";
import type { ConfigContext } from "../../plugin/config/context.ts";
import { customDirective, definePlugin, directive } from "../../plugin/index.ts";
import { Shed } from "./shed.ts";

const declared = directive({ otherwise: reportOption });

function reportOption(line: { readonly name: Token }, { report }: ConfigContext): boolean {
  report.error("PLUGIN_UNKNOWN_PROPERTY", line.name.span, "shed takes no options", {
    expected: "no block",
  });
  return true;
}

export default definePlugin({
  name: "shed",
  summary: "Sheds load: drops the oldest queries when too many wait, and counts them.",
  config: customDirective(declared.description, (occurrences: readonly Directive[], context) => {
    const before = context.report.diagnostics.length;
    const [first] = occurrences;
    for (const { scheme, zone, port } of context.keys) {
      if (scheme === "dns" || first === undefined) continue;
      const key = `${scheme}://${zone}:${port}`;
      const message = `only plain DNS server blocks are supported; "${key}" uses transport "${scheme}"`;
      context.report.error("SHED_TRANSPORT", first.name.span, message, {
        expected: "a block of its own for that key",
      });
    }
    const configs = declared.parse(occurrences, context);
    return context.report.diagnostics.length > before ? undefined : configs;
  }),
  create: (_config, { metrics }) => new Shed(metrics),
});
