/**
 * What operators are told of Corefiles that are wrong, word for word. Each file of the folder is a Corefile, a line of three dashes, and
 * what `portolan check` prints.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { formatForPeople } from "../src/cli/check/human.ts";
import { memoryHost } from "../src/corefile/host.ts";
import { inspectConfiguration, readConfiguration } from "../src/server/configuration/configuration.ts";
import { thisMachine } from "../src/server/configuration/machine.ts";
import { PluginRegistry } from "../src/server/configuration/plugin-registry.ts";

const folder = join(import.meta.dirname, "fixtures", "wrong-corefiles");
const files = globSync("*.txt", { cwd: folder }).sort();

/** Without interfaces and addresses, so that the result is the same everywhere. */
const machine = { ...thisMachine({}), interfaceAddresses: () => undefined, addresses: () => [] };
const registry = await PluginRegistry.builtIn();
const options = { registry, host: memoryHost(), machine, defaultPort: 53 };

for (const file of files) {
  test(basename(file, ".txt").replaceAll("-", " "), async () => {
    const [text = "", expected = ""] = readFileSync(join(folder, file), "utf8").split(/^---\n/m);
    const source = { text, file: "Corefile" };
    const { diagnostics } = await inspectConfiguration(source, options);
    assert.equal(formatForPeople([{ file: "Corefile", diagnostics, textOf: () => text }], false), expected);
    const isRefused = diagnostics.some(({ severity }) => severity === "error");
    if (isRefused) await assert.rejects(readConfiguration(source, options), { name: "ConfigurationError" });
    else assert.ok((await readConfiguration(source, options)).warnings.length > 0);
  });
}

test("there are at least sixty of them", () => assert.ok(files.length >= 60, `${files.length}`));
