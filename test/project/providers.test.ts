/** docs/providers: the pages are followed as far as that goes without the provider. */
import assert from "node:assert/strict";
import { cpSync, existsSync, globSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments } from "yaml";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { projectRoot, runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const FOLDER = join(projectRoot, "docs/providers");
const PROVIDERS = ["aks", "eks", "gke", "k3s", "kops", "kubeadm", "openshift", "rke2", "talos"];

interface Block {
  readonly language: string;
  readonly text: string;
  /** Of a block behind a line such as "`NAME`:" or "`NAME`, words:". */
  readonly file: string | undefined;
}

function blocksOf(page: string): Block[] {
  return fencedBlocks(page).map(({ language, text, introduction }) => ({
    language,
    text,
    file: /^`([\w./-]+)`.*:$/.exec(introduction)?.[1],
  }));
}

const pageOf = (provider: string): string => readFileSync(join(FOLDER, `${provider}.md`), "utf8");

test("each provider has a page with the same sections, and a row in the table", () => {
  assert.deepEqual(readdirSync(FOLDER).sort(), ["README.md", ...PROVIDERS.map((name) => `${name}.md`)]);
  const table = readFileSync(join(FOLDER, "README.md"), "utf8");
  for (const provider of PROVIDERS) {
    const titles = Array.from(pageOf(provider).matchAll(/^## (.+)$/gm), ([, title = ""]) => title);
    assert.equal(titles.length, 3, provider);
    assert.match(titles.join(), /^What \w+ overwrites,Put Portolan there,Back to (?:CoreDNS|kube-dns)$/);
    assert.ok(table.includes(`](${provider}.md)`), provider);
  }
});

for (const provider of PROVIDERS) {
  test(`the commands and files of ${provider} are what shells, parsers and portolan take`, async (t) => {
    const blocks = blocksOf(pageOf(provider));
    const files: Record<string, string> = {};
    for (const { language, text, file } of blocks) {
      if (language === "yaml" || language === "json") {
        assert.ok(file !== undefined, `a block without a name: ${text.slice(0, 60)}`);
        for (const document of parseAllDocuments(text)) assert.deepEqual(document.errors ?? [], [], file);
        if (language === "json") JSON.parse(text);
        if (!file.startsWith("/")) files[file] = text;
      }
      if (language === "sh") {
        const { code, errors } = await run("bash", ["-n", "-c", text]);
        assert.equal(code, 0, errors);
      }
    }
    const cwd = makeTree(t, files);
    cpSync(join(projectRoot, "deploy"), join(cwd, "deploy"), { recursive: true });
    const lines = blocks
      .filter(({ language }) => language === "sh")
      .flatMap(({ text }) => text.trim().split("\n"));
    assert.ok(lines.some((line) => /--replicas=0|oc apply/.test(line)));
    for (const line of lines) {
      for (const [path] of line.matchAll(/\bdeploy\/[\w./-]+/g)) assert.ok(existsSync(join(cwd, path)), path);
      // The cluster's own objects are not here.
      if (!line.startsWith("portolan ") || (line.endsWith(" cluster.yaml") && provider === "k3s")) continue;
      const [command = "", target] = line.split(" > ");
      const { code, output, errors } = await runPortolan(command.split(" ").slice(1), { cwd });
      assert.equal(code, 0, `${line}\n${output}${errors}`);
      if (target === undefined) continue;
      files[target] = output;
      writeFileSync(join(cwd, target), output);
    }
    // What migrate wrote can be started.
    if (files.Corefile !== undefined) {
      const { code, output } = await runPortolan(["check", "-no-files", "Corefile"], { cwd });
      assert.equal(code, 0, output);
    }
  });
}

test("kubectl takes the overlay of k3s, which mounts the ConfigMaps of k3s", {
  skip: skipWithout("kubectl"),
}, async (t) => {
  const overlay = blocksOf(pageOf("k3s")).find(({ file }) => file === "portolan/kustomization.yaml");
  const cwd = makeTree(t, { "portolan/kustomization.yaml": overlay?.text ?? "" });
  cpSync(join(projectRoot, "deploy"), join(cwd, "deploy"), { recursive: true });
  const { code, output, errors } = await run("kubectl", ["kustomize", "portolan"], { cwd });
  assert.equal(code, 0, errors);
  const deployment = parseAllDocuments(output)
    .map((document) => document.toJS())
    .find(({ kind }) => kind === "Deployment");
  const { volumes, containers } = deployment.spec.template.spec;
  assert.equal(volumes.length, 1);
  assert.deepEqual(
    volumes[0].projected.sources.map(({ configMap }: { configMap: { name: string } }) => configMap.name),
    ["coredns", "coredns-custom"],
  );
  const [mount] = containers[0].volumeMounts;
  assert.deepEqual([mount.name, mount.mountPath], [volumes[0].name, "/etc/coredns"]);
  assert.equal(deployment.spec.template.metadata.labels["k8s-app"], "portolan-trial");
});

test("no page names a manifest of Portolan that is not there", () => {
  const names = new Set(globSync("deploy/**/*", { cwd: projectRoot }).map((path) => basename(path)));
  for (const provider of PROVIDERS)
    for (const [, path = ""] of pageOf(provider).matchAll(
      /deploy\/kubernetes\/(?:optional\/)?([\w-]+\.yaml)/g,
    ))
      assert.ok(names.has(path), `${provider}: ${path}`);
});
