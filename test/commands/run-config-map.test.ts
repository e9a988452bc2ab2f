/** `portolan explain` and `portolan test` with a Corefile in a ConfigMap, read as `portolan check` reads it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { runPortolan } from "../support/portolan.ts";

const env = { NO_COLOR: "1" };

const CUSTOM = `apiVersion: v1
kind: ConfigMap
metadata:
  name: coredns-custom
data:
  own.server: |
    own.example:53 {
        whoami
    }
`;
const MAIN = `apiVersion: v1
kind: ConfigMap
metadata:
  name: coredns
data:
  Corefile: |
    .:53 {
        hosts {
            192.0.2.5 a.example
        }
        import extra
    }
    import custom/*.server
  extra: |
    whoami
`;
const CASES = `
cases:
  - query: a.example
    expect: { answer: a.example. A 192.0.2.5, plugin: hosts }
  - query: b.own.example
    expect: { plugin: whoami }
`;

test("a Corefile in a ConfigMap, with the keys of both ConfigMaps", async (t) => {
  const cwd = makeTree(t, {
    "cluster.yaml": `${MAIN}---\n${CUSTOM}`,
    "dns.test.yaml": `corefile: cluster.yaml\n${CASES}`,
  });
  const explained = await runPortolan(["explain", "b.own.example", "-conf", "cluster.yaml"], { cwd, env });
  assert.deepEqual([explained.code, explained.errors], [0, ""]);
  assert.match(explained.output, /^ {2}block +own\.example\.:53, cluster\.yaml \(own\.server\):1$/m);
  const tested = await runPortolan(["test", "dns.test.yaml"], { cwd, env });
  assert.deepEqual([tested.code, tested.errors], [0, ""], tested.output);
});

test("coredns-custom alone, with the Corefile of AKS", async (t) => {
  const cwd = makeTree(t, {
    "custom.yaml": CUSTOM,
    "service.yaml":
      "apiVersion: v1\nkind: Service\nmetadata: { name: web, namespace: shop }\nspec: { clusterIP: 10.96.0.7 }\n",
  });
  const words = ["explain", "b.own.example", "-conf", "custom.yaml", "-manifests", "service.yaml"];
  const { code, output, errors } = await runPortolan(words, { cwd, env });
  assert.equal(code, 0, errors);
  assert.match(output, /own\.example\.:53, custom\.yaml \(own\.server\):1/);
});

for (const [title, text, message] of [
  [
    "no Corefile",
    "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n",
    /a\.yaml: no Corefile in this YAML/,
  ],
  [
    "two Corefiles",
    `${MAIN}---\n${MAIN}`,
    /a\.yaml: it has 2 ConfigMaps with a Corefile, and only one can run/,
  ],
  ["YAML that is not valid", `${MAIN}  other: "\n`, /a\.yaml:\d+:\d+: not valid YAML: /],
] as const)
  test(`explain refuses ${title}`, async (t) => {
    const cwd = makeTree(t, { "a.yaml": text });
    const { code, output, errors } = await runPortolan(["explain", "a.example", "-conf", "a.yaml"], {
      cwd,
      env,
    });
    assert.deepEqual([code, output], [2, ""]);
    assert.match(errors, message);
  });
