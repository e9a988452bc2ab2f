/** `downgrade` knows which of our options CoreDNS lacks. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { builtInPlugins, PluginRegistry } from "../../server/configuration/plugin-registry.ts";
import { isOwnOption, pluginSince } from "./coredns-words.ts";

/** One line per plugin: its name, then the options of CoreDNS 1.15.0 that Portolan also accepts. */
const COREDNS = new URL("fixtures/coredns-options.txt", import.meta.url);

test("every option is CoreDNS's or our own", async () => {
  const lines: string[] = [];
  const registry = new PluginRegistry(await builtInPlugins());
  for (const entry of registry.names) {
    if (pluginSince(entry) === undefined) continue;
    const { config } = await registry.definition(entry);
    const names = config.description.options.map(({ name }) => name);
    const shared = names.filter((name) => !isOwnOption(entry, name)).toSorted();
    if (shared.length > 0) lines.push(`${entry} ${shared.join(" ")}`);
  }
  assert.equal(`${lines.toSorted().join("\n")}\n`, readFileSync(COREDNS, "utf8"));
});
