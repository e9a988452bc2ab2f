import type { LintRule } from "./rule.ts";

/** Finds plugins that the global options add but no server block uses. They are not even loaded. */
export const unusedPlugin: LintRule = {
  code: "LINT_PLUGIN_UNUSED",
  about: "an added plugin is used in no server block",

  check({ blocks, globalOptions }, report) {
    const used = new Set(blocks.flatMap(({ directives }) => directives.map(({ name }) => name.text)));
    const reported = new Set<string>();
    for (const { name: option, args, block } of globalOptions) {
      const [name, module] = args;
      // Invalid options have their own error.
      if (option.text !== "plugin" || block !== undefined || args.length % 2 > 0) continue;
      if (name === undefined || module === undefined) continue;
      if (used.has(name.text) || reported.has(name.text)) continue;
      reported.add(name.text);
      const message = `no server block uses the plugin '${name.text}': '${module.text}' is not loaded`;
      report.warning(unusedPlugin.code, name.span, message, {
        expected: `a line '${name.text}' in the server blocks that need it, or no 'plugin' line`,
      });
    }
  },
};
