/**
 * The modules that the threads of `multisocket` load: each has its own copy, so they must not load code for the first
 * thread only.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Portolan } from "../support/portolan.ts";

const NOTE_MODULES = new URL("../fixtures/note-modules.mjs", import.meta.url).href;
/** Of the program as it is built, and of its sources. */
const YAML = /\/yaml[/-]/;
const LINT = /\/lint[/-]/;

/** Of the client of an API, and what reads its answers. */
const CLIENT = /\/(undici|@bufbuild)\//;

/** Starts two threads with a cluster. @returns what each has loaded, the first one first */
async function modulesOf(
  context: TestContext,
  cluster: string,
  files: Readonly<Record<string, string>>,
): Promise<string[][]> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-modules-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const noted = join(folder, "modules");
  await using _server = await Portolan.start(
    (port) => `.:${port("dns")} {
  multisocket 2
  kubernetes cluster.local {
    ${cluster}
  }
  forward . 127.0.0.1
  cache
}
`,
    { files, env: { NODE_OPTIONS: `--import ${NOTE_MODULES}`, NOTED_MODULES: noted } },
  );
  const byThread = new Map<string, string[]>();
  for (const line of readFileSync(noted, "utf8").trimEnd().split("\n")) {
    const [thread = "", url = ""] = line.split(" ");
    const urls = byThread.get(thread) ?? [];
    byThread.set(thread, [...urls, url]);
  }
  return [...byThread.values()];
}

test("a further thread loads neither YAML nor the warnings", async (context) => {
  const [leader = [], follower = [], ...others] = await modulesOf(context, "manifests manifests", {
    "manifests/shop.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: { name: shop }\n",
  });
  assert.ok(leader.some((url) => YAML.test(url)));
  assert.ok(leader.some((url) => LINT.test(url)));
  assert.deepEqual(others, []);
  assert.ok(follower.some((url) => /\/plugins\/kubernetes\//.test(url)));
  assert.deepEqual(
    follower.filter((url) => YAML.test(url) || LINT.test(url)),
    [],
  );
});

test("a further thread loads nothing that asks the API of a cluster", async (context) => {
  await using api = await ApiSimulator.start();
  const kubeconfig = {
    clusters: [{ name: "test", cluster: { server: api.url } }],
    users: [{ name: "test", user: { token: "test" } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    "current-context": "test",
  };
  const [leader = [], follower = [], ...others] = await modulesOf(context, "kubeconfig kubeconfig", {
    kubeconfig: JSON.stringify(kubeconfig),
  });
  assert.ok(leader.some((url) => CLIENT.test(url)));
  assert.deepEqual(others, []);
  assert.ok(follower.some((url) => /\/plugins\/kubernetes\//.test(url)));
  assert.deepEqual(
    follower.filter((url) => YAML.test(url) || CLIENT.test(url)),
    [],
  );
});
