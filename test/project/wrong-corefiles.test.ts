/**
 * What operators are told of Corefiles that are wrong, word for word. Each file of the folder is a Corefile, a line of three dashes, and
 * what `portolan check` prints.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { formatForPeople } from "../../src/cli/check/human.ts";
import type { Diagnostic } from "../../src/corefile/diagnostic.ts";
import { memoryHost } from "../../src/corefile/host.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { FakeClock } from "../../src/lib/time/clock.ts";
import { inspectConfiguration, readConfiguration } from "../../src/server/configuration/configuration.ts";
import { systemRandom, thisMachine } from "../../src/server/configuration/machine.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { examineFiles } from "../../src/server/offline-server.ts";

const folder = join(import.meta.dirname, "..", "fixtures", "wrong-corefiles");
const files = globSync("*.txt", { cwd: folder }).sort();

/** Without interfaces and addresses, and with a sound OpenSSL, so that the result is the same everywhere. */
const machine = {
  ...thisMachine({}),
  interfaceAddresses: () => undefined,
  addresses: () => [],
  openssl: "3.5.9",
};
const registry = await PluginRegistry.builtIn();
const options = { registry, host: memoryHost(), machine, defaultPort: 53 };
const surroundings = {
  clock: new FakeClock(),
  random: systemRandom(),
  log: new MemoryLog({ debugEnabled: false }),
};
const isError = ({ severity }: Diagnostic): boolean => severity === "error";

for (const file of files) {
  test(basename(file, ".txt").replaceAll("-", " "), async () => {
    const [text = "", expected = ""] = readFileSync(join(folder, file), "utf8").split(/^---\n/m);
    const source = { text, file: "Corefile" };
    const found = (await inspectConfiguration(source, options)).diagnostics;
    const examined = found.some(isError) ? [] : await examineFiles({ ...options, ...surroundings, source });
    const diagnostics = [...found, ...examined];
    assert.equal(formatForPeople([{ file: "Corefile", diagnostics, textOf: () => text }], false), expected);
    if (found.some(isError))
      await assert.rejects(readConfiguration(source, options), { name: "ConfigurationError" });
    else assert.ok((await readConfiguration(source, options)).warnings.length > 0 || examined.length > 0);
  });
}

test("there are at least sixty of them", () => assert.ok(files.length >= 60, `${files.length}`));
