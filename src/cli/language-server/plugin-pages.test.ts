import assert from "node:assert/strict";
import { test } from "node:test";
import { PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { optionHelp, pluginHelp } from "./plugin-pages.ts";

test("the README of every plugin explains the plugin and every option that it declares", async () => {
  const registry = await PluginRegistry.builtIn();
  const silent: string[] = [];
  let count = 0;
  for (const { name, module } of registry.entries) {
    assert.match(pluginHelp(module) ?? "", /^\*\*\w+\*\*: \S[\s\S]*\n\n```txt\n/, name);
    const { config } = await registry.definition(name);
    for (const option of config.description.options) {
      count++;
      if (optionHelp(module, option.name) === undefined) silent.push(`${name} ${option.name}`);
    }
  }
  assert.ok(count > 200, `only ${count} options`);
  assert.deepEqual(silent, []);
});

test("an option's help is its lines of the syntax and the item about it", () => {
  assert.equal(optionHelp("cache", "keepttl")?.split("\n\n")[0], "```corefile\nkeepttl\n```");
  assert.match(optionHelp("kubernetes", "pods") ?? "", /^```corefile\npods .*\n```\n\n`pods` controls/);
  assert.equal(optionHelp("cache", "nonsense"), undefined);
  assert.equal(optionHelp("nonsense", "ttl"), undefined);
  assert.equal(pluginHelp("nonsense"), undefined);
});
