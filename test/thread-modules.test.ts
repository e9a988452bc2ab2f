/** What the threads of `multisocket` load: each has a copy of its own, so nothing that only the first thread runs. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Portolan } from "./support/portolan.ts";

const NOTE_MODULES = new URL("./fixtures/note-modules.mjs", import.meta.url).href;
/** Of the program as it is built, and of its sources. */
const YAML = /\/yaml[/-]/;
const LINT = /\/lint[/-]/;

test("a further thread loads neither YAML nor the warnings", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-modules-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const noted = join(folder, "modules");
  await using _server = await Portolan.start(
    (port) => `.:${port("dns")} {
  multisocket 2
  kubernetes cluster.local {
    manifests manifests
  }
  forward . 127.0.0.1
  cache
}
`,
    {
      files: { "manifests/shop.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n" },
      env: { NODE_OPTIONS: `--import ${NOTE_MODULES}`, NOTED_MODULES: noted },
    },
  );
  const byThread = new Map<string, string[]>();
  for (const line of readFileSync(noted, "utf8").trimEnd().split("\n")) {
    const [thread = "", url = ""] = line.split(" ");
    const urls = byThread.get(thread) ?? [];
    byThread.set(thread, [...urls, url]);
  }
  const [leader = [], ...others] = byThread.values();
  assert.ok(leader.some((url) => YAML.test(url)));
  assert.ok(leader.some((url) => LINT.test(url)));
  assert.equal(others.length, 1);
  const [follower = []] = others;
  assert.ok(follower.some((url) => /\/plugins\/kubernetes\//.test(url)));
  assert.deepEqual(
    follower.filter((url) => YAML.test(url) || LINT.test(url)),
    [],
  );
});
