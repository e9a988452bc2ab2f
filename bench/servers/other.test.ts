import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { otherServer } from "./other.ts";
import type { Deployment } from "./server.ts";

const DEPLOYMENT: Deployment = {
  folder: "/work",
  port: 10_053,
  metricsPort: 10_054,
  upstreamPort: 10_055,
  cacheEntries: 10_000,
  workload: "forward",
  cluster: { manifests: "/cluster/manifests", hosts: "/cluster/hosts", zoneFile: "/cluster/zone" },
};

test("without a template a server gets the benchmark's own Corefile", () => {
  const server = otherServer({
    name: "coredns",
    command: "/opt/coredns -conf {config}",
    templates: new Map(),
  });
  const { command, args, files } = server.launch(DEPLOYMENT);
  assert.deepEqual([command, ...args], ["/opt/coredns", "-conf", join("/work", "Corefile")]);
  const corefile = files.Corefile ?? "";
  assert.match(corefile, /^\.:10053 \{$/m);
  assert.match(corefile, /^ {4}file \/cluster\/zone cluster\.local$/m);
  assert.match(corefile, /^ {4}forward \. 127\.0\.0\.1:10055$/m);
  assert.match(corefile, /^ {4}cache 3600 \{$/m);
});

test("no cache, no line for it", () => {
  const server = otherServer({ name: "coredns", command: "coredns", templates: new Map() });
  const { files } = server.launch({ ...DEPLOYMENT, cacheEntries: 0 });
  assert.doesNotMatch(files.Corefile ?? "", /cache/);
});

test("placeholders are filled in, other braces stay", (t) => {
  const folder = makeTree(t, {
    "all.conf": "listen {port} {metrics} {zone} {unknown} {\n}\n",
    "forward.conf": "to {upstream} {manifests} {hosts} {zonefile} {cache}\n",
  });
  const templates = new Map([
    ["", join(folder, "all.conf")],
    ["forward", join(folder, "forward.conf")],
  ]);
  const server = otherServer({ name: "other", command: "other --file={config} -p {port}", templates });
  const forward = server.launch(DEPLOYMENT);
  assert.deepEqual(forward.args, ["--file=/work/forward.conf", "-p", "10053"]);
  assert.deepEqual(forward.files, {
    "forward.conf": "to 127.0.0.1:10055 /cluster/manifests /cluster/hosts /cluster/zone 10000\n",
  });
  const cached = server.launch({ ...DEPLOYMENT, workload: "cached-1k" });
  assert.deepEqual(cached.files, { "all.conf": "listen 10053 10054 cluster.local {unknown} {\n}\n" });
});
