import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { memoryHost } from "../../corefile/host.ts";
import { type Inspection, inspectConfiguration } from "./configuration.ts";
import { thisMachine } from "./machine.ts";
import { PluginRegistry } from "./plugin-registry.ts";

const builtIn = await PluginRegistry.builtIn();

async function inspect(options: string, registry = builtIn): Promise<Inspection> {
  return inspectConfiguration(
    { text: `{\n${options}\n}\n.:0 {\n    whoami\n}\n`, file: "/etc/dns/Corefile" },
    { host: memoryHost(), registry, machine: thisMachine({}), defaultPort: 53 },
  );
}

function neighboursOf({ registry }: Inspection, name: string): (string | undefined)[] {
  const position = registry.position(name);
  return [registry.names[position - 1], registry.names[position + 1]];
}

describe("global options", () => {
  for (const [place, neighbours] of [
    ["", [builtIn.names[builtIn.position("hosts") - 1], "hosts"]],
    [" before log", [builtIn.names[builtIn.position("log") - 1], "log"]],
    [" after log", ["log", builtIn.names[builtIn.position("log") + 1]]],
  ] as const) {
    it(`plugin greet ./greet.ts${place}`, async () => {
      const inspection = await inspect(`    plugin greet ./greet.ts${place}`);
      assert.deepEqual(
        inspection.diagnostics.map(({ code }) => code),
        ["LINT_PLUGIN_UNUSED"],
      );
      assert.deepEqual(neighboursOf(inspection, "greet"), neighbours);
      const { external } = inspection.registry.entries.find(({ name }) => name === "greet") ?? {};
      assert.deepEqual(external, { from: "/etc/dns", declaredBy: "/etc/dns/Corefile:2" });
      assert.ok(!builtIn.names.includes("greet"));
    });
  }

  it("may put a module in the place of a plugin, where the command line has not", async () => {
    const line = "    plugin whoami ./whoami.ts";
    const moduleIn = ({ registry }: Inspection) =>
      registry.entries.find(({ name }) => name === "whoami")?.module;
    assert.equal(moduleIn(await inspect(line)), "./whoami.ts");
    const pinned = builtIn.withEntries([{ name: "whoami", module: "whoami", isPinned: true }]);
    assert.equal(moduleIn(await inspect(line, pinned)), "whoami");
  });

  for (const [options, code, message, column] of [
    [
      "plugin greet",
      "GLOBAL_OPTION_SYNTAX",
      "Wrong argument count or unexpected line ending after 'greet'",
      1,
    ],
    ["plugin", "GLOBAL_OPTION_SYNTAX", "Wrong argument count or unexpected line ending after 'plugin'", 1],
    [
      "plugin a a.ts after",
      "GLOBAL_OPTION_SYNTAX",
      "Wrong argument count or unexpected line ending after 'after'",
      1,
    ],
    ["plugin a a.ts beside log", "GLOBAL_OPTION_SYNTAX", "'beside' is not a position", 15],
    ["plugin a:b a.ts", "GLOBAL_OPTION_SYNTAX", "'a:b' cannot be the name of a plugin", 8],
    ['plugin a ""', "GLOBAL_OPTION_SYNTAX", "the module has no name", 10],
    ["plugin a a.ts {\n x\n}", "GLOBAL_OPTION_SYNTAX", "the global option 'plugin' has no block", 1],
    ["plugin a a.ts\nplugin a b.ts", "GLOBAL_OPTION_TWICE", "the plugin 'a' is added twice", 8],
    ["plugin a a.ts\nplguin b b.ts", "GLOBAL_OPTION_SYNTAX", "unknown global option 'plguin'", 1],
    ["plugin a a.ts before lgo", "GLOBAL_OPTION_PLACE", "there is no plugin 'lgo'", 22],
  ] as const) {
    it(`refuses ${JSON.stringify(options)}`, async () => {
      const { diagnostics } = await inspect(options);
      const [first, ...others] = diagnostics.filter(({ severity }) => severity === "error");
      assert.deepEqual([first?.code, first?.message, first?.span.column], [code, message, column]);
      assert.deepEqual(others, []);
    });
  }

  it("the nearest name is suggested for a neighbour", async () => {
    const { diagnostics } = await inspect("plugin a a.ts before lgo");
    const fault = diagnostics.find(({ code }) => code === "GLOBAL_OPTION_PLACE");
    assert.equal(fault?.suggestion, "log");
  });
});
