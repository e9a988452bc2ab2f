import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";

const plugins = join(import.meta.dirname, "..", "src", "plugins");
const contract = readFileSync(join(import.meta.dirname, "..", "src", "plugin", "index.ts"), "utf8");

/** Of the program's own housekeeping, and of use to nobody else. */
const HOUSEKEEPING = [
  "file-fault.ts",
  "http-client.ts",
  "key-pair.ts",
  "linked-list.ts",
  "memory-release.ts",
  "metrics-exposition.ts",
  "node-modules.ts",
  "program-files.ts",
  "resident-memory.ts",
  "listen-address.ts",
  "rare-errors.ts",
  "server-identity.ts",
  "thrift.ts",
  "time-stamp.ts",
];

/** Names that the built-in plugins import from the contract's room, or from the helpers below it, by file. */
function namesInUse(): Map<string, string> {
  const names = new Map<string, string>();
  for (const file of globSync("*/*.ts", { cwd: plugins })) {
    if (file.endsWith(".test.ts")) continue;
    const text = readFileSync(join(plugins, file), "utf8");
    for (const [, list = "", room = "", module = ""] of text.matchAll(IMPORT)) {
      if (room === "lib" && HOUSEKEEPING.includes(basename(module))) continue;
      // How the program keeps octets is no promise to others.
      if (module.startsWith("collections/slab/") || module.startsWith("packed/")) continue;
      for (const [, name = ""] of list.matchAll(/(?:^|,)\s*(?:type )?(\w+)/g))
        names.set(name, `${file} imports ${name} from ${room}/${module}`);
    }
  }
  return names;
}

const IMPORT = /import\s+(?:type\s+)?\{([^}]*)\}\s+from\s+"\.\.\/\.\.\/(plugin|lib)\/([^"]+)"/g;

test("what the built-in plugins use of the server, everybody's plugins can use", () => {
  const exported = new Set(contract.match(/\w+/g));
  const names = namesInUse();
  assert.ok(names.size > 50, "the imports were not found");
  const hidden = [...names].filter(([name]) => !exported.has(name)).map(([, use]) => use);
  assert.deepEqual(hidden, []);
});
