/** The commands and files of docs/migrate-from-coredns.md work as the page says. */
import assert from "node:assert/strict";
import { cpSync, existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parse, parseAllDocuments } from "yaml";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { assertSelects, at, corefileOf, objectCalled, partAt, plainObjects } from "../support/deployment.ts";
import { skipWithoutKubectl } from "../support/kubernetes-api/kubectl.ts";
import { projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const page = readFileSync(join(projectRoot, "docs", "migrate-from-coredns.md"), "utf8");
const blocks = fencedBlocks(page);
const overlay = blocks.find(({ introduction }) =>
  introduction.startsWith("Create `portolan/kustomization.yaml`"),
);

test("brings the user's Corefile and image, outside of the Service", {
  skip: skipWithoutKubectl,
}, async (t) => {
  const folder = makeTree(t, {
    "portolan/kustomization.yaml": overlay?.text ?? "",
    "portolan/Corefile": ".:53 {\n    whoami\n}\n",
  });
  cpSync(join(projectRoot, "deploy"), join(folder, "deploy"), { recursive: true });
  const { code, output, errors } = await run("kubectl", ["kustomize", join(folder, "portolan")]);
  assert.equal(code, 0, errors);
  const objects = parseAllDocuments(output).map((document) => document.toJS());
  assert.equal(corefileOf(objects), ".:53 {\n    whoami\n}\n");
  const template = partAt(objectCalled(objects, "Deployment portolan"), "spec.template");
  assert.match(String(at(template, "spec.containers.0.image")), /^registry\.example\.org\/portolan:/);
  const service = objectCalled(plainObjects(), "Service kube-dns");
  assert.throws(() => assertSelects(partAt(service, "spec.selector"), template));
  // Without the lines that step 3 removes the Service has them.
  const untouched = objectCalled(plainObjects(), "Deployment portolan");
  assertSelects(partAt(service, "spec.selector"), partAt(untouched, "spec.template"));
});

test("gives a CoreDNS pod what ours has to open port 53", () => {
  const [, patch = ""] = /<<'PATCH'\n([\s\S]*?)^PATCH$/m.exec(page) ?? [];
  const pod = partAt(objectCalled(plainObjects(), "Deployment portolan"), "spec.template.spec");
  const patched = partAt(parse(patch), "spec.template.spec");
  assert.deepEqual(at(patched, "securityContext.sysctls"), at(pod, "securityContext.sysctls"));
  assert.deepEqual(at(patched, "containers.0.resources.limits"), at(pod, "containers.0.resources.limits"));
});

test("names files and metrics that are there", () => {
  const paths = Array.from(page.matchAll(/\bdeploy\/[\w./-]*\w/g), ([path]) => path);
  assert.ok(paths.length > 5);
  assert.deepEqual(
    paths.filter((path) => !existsSync(join(projectRoot, path))),
    [],
  );
  const sources = globSync("src/**/*.ts", { cwd: projectRoot, exclude: ["**/*.test.ts"] })
    .map((file) => readFileSync(join(projectRoot, file), "utf8"))
    .join("\n");
  const metrics = Array.from(page.matchAll(/\b(?:coredns|portolan)_\w+/g), ([name]) =>
    name.replace(/_bucket$/, ""),
  );
  assert.deepEqual(
    metrics.filter((name) => !sources.includes(`"${name}"`)),
    [],
  );
});
