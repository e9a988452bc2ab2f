/** Old Corefiles: the server starts them, and `portolan migrate` rewrites them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { createServer } from "../../src/index.ts";
import { dig } from "../support/dig.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { CredentialsFolder, kubeconfigText } from "../support/kubernetes-api/credentials-folder.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";

const ARTICLE = (port: string, upstream: string, extra = "") => `.:${port} {
    errors
    health 127.0.0.1:0
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       manifests .
       pods insecure
       upstream
       resyncperiod 5m
       fallthrough in-addr.arpa ip6.arpa
    }
    # everything else
    proxy . ${upstream} {
       policy least_conn
       protocol dns force_tcp
    }
    proxy global 127.0.0.1:1
    startup /bin/echo is up
    shutdown /bin/echo is down
    cache 30
    ${extra}
}
global:${port} {
    errors
    cache 30
    proxy . ${upstream}
}
`;

test("a Corefile of 2018 starts, serves, and names what to write today", {
  skip: skipWithout("dig"),
}, async () => {
  await using upstream = await createServer({
    corefile: ".:0 {\n bind 127.0.0.1\n erratic {\n drop 0\n }\n}",
  });
  await upstream.start();
  const address = `127.0.0.1:${upstream.addresses[0]?.port}`;
  await using server = await Portolan.start((port) => ARTICLE(String(port("dns")), address), {
    files: { "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n" },
  });
  for (const name of ["www.example.org", "service1.test.global"])
    assert.deepEqual(
      (await dig(server, name, "A")).answer.map((record) => record.split(" ").at(-1)),
      ["192.0.2.53"],
    );
  assert.deepEqual((await dig(server, "1-2-3-4.shop.pod.cluster.local", "A")).status, "NOERROR");
  const warnings = server.log.split("\n").filter((line) => /was removed in CoreDNS/.test(line));
  assert.deepEqual(
    warnings.map((line) => line.replace(/^.*warning: /, "")),
    [
      "'upstream' in 'kubernetes' was removed in CoreDNS 1.7.0: delete it, external names are always resolved through this server",
      "'resyncperiod' in 'kubernetes' was removed in CoreDNS 1.7.0: leave it out, changes of the cluster are watched",
      `'proxy' was removed in CoreDNS 1.5.0: write 'forward . ${address}'`,
      "'proxy' was removed in CoreDNS 1.5.0: write 'forward global 127.0.0.1:1'",
      "'startup' was removed in CoreDNS 1.1.0: write 'on startup /bin/echo is up'",
      "'shutdown' was removed in CoreDNS 1.1.0: write 'on shutdown /bin/echo is down'",
      `'proxy' was removed in CoreDNS 1.5.0: write 'forward . ${address}'`,
    ],
  );
  await server.stop();
  assert.match(server.log, /^is up$/m);
  assert.match(server.log, /^is down$/m);
});

test("what migrate writes passes check, and is its own migration", async (t) => {
  const folder = makeTree(t, { Corefile: ARTICLE("1053", "192.0.2.53") });
  const once = await runPortolan(["migrate", "-from", "1.1.3", "Corefile"], { cwd: folder });
  assert.equal(once.code, 0, once.errors);
  assert.match(once.output, /# everything else/);
  assert.match(once.errors, /Plugin "proxy" is removed in 1\.5\.0\. It is replaced by "forward"\./);
  const again = await runPortolan(["migrate", "-"], { cwd: folder, input: once.output });
  assert.equal(again.output, once.output);
  assert.equal(again.errors, "");
  const checked = await runPortolan(["check", "-"], { cwd: folder, input: once.output });
  assert.equal(checked.code, 0, checked.output);
});

test("kube-dns's ConfigMap, Helm values, JSON and the way back", async (t) => {
  const folder = makeTree(t, {
    "kube-dns.yaml":
      'kind: ConfigMap\ndata:\n  stubDomains: |\n    {"acme.local": ["1.1.1.1", "2.2.2.2"]}\n  upstreamNameservers: \'["8.8.8.8"]\'\n',
    "coredns.yaml": "kind: ConfigMap\ndata:\n  Corefile: |\n    .:53 {\n        proxy . 8.8.8.8\n    }\n",
    "values.yaml":
      "servers:\n- zones:\n  - zone: .\n  port: 53\n  plugins:\n  - name: proxy\n    parameters: . 8.8.8.8\n",
    Corefile: "{\n    plugin x ./x.ts\n}\n.:53 {\n    explain\n    whoami\n}\n",
    "x.ts": "",
  });
  const migrate = (...words: string[]) => runPortolan(["migrate", ...words], { cwd: folder });
  const fromKubeDns = await migrate("kube-dns.yaml");
  assert.equal(fromKubeDns.code, 0, fromKubeDns.errors);
  assert.match(fromKubeDns.output, /^acme\.local:53 \{\n(.*\n){3} {4}forward \. 1\.1\.1\.1 2\.2\.2\.2 \{/m);
  assert.match(fromKubeDns.errors, /^note: wildcard labels/m);
  for (const file of ["coredns.yaml", "values.yaml"])
    assert.equal((await migrate(file)).output, ".:53 {\n    forward . 8.8.8.8\n}\n", file);
  const json: unknown = JSON.parse((await migrate("-format", "json", "coredns.yaml")).output);
  assert.ok(typeof json === "object" && json !== null && "corefile" in json && "notices" in json);
  const back = await migrate("downgrade", "-to", "1.8.0", "Corefile");
  assert.equal(back.output, ".:53 {\n    whoami\n}\n");
  assert.match(back.errors, /Plugin "explain" is not known in 1\.8\.0\./);
});

const TWO_PLACES = `.:53 {
    startup /bin/true
    import extra.conf
    health {
        x
    }
}
`;

for (const [file, migrated] of [
  ["dir/cm.yaml", "dir/cm.yaml (Corefile)"],
  ["dir/Corefile", "dir/Corefile"],
] as const) {
  test(`places are named after the text that they are in: ${file}`, async (t) => {
    const folder = makeTree(t, {
      "dir/cm.yaml": `kind: ConfigMap\ndata:\n  Corefile: |\n${TWO_PLACES.replaceAll(/^(?=.)/gm, "    ")}`,
      "dir/Corefile": TWO_PLACES,
      "dir/extra.conf": "# imported\ncache {\n  y\n}\n",
    });
    const migrate = (...words: string[]) => runPortolan(["migrate", ...words, file], { cwd: folder });
    const { code, errors } = await migrate();
    assert.equal(code, 1, errors);
    const lines = errors.split("\n");
    const first = lines.find((line) => line.includes('"startup" is removed'));
    assert.equal(first?.split(": ")[0], `${migrated}:2:5`);
    const start = lines.indexOf("The result does not start:");
    assert.deepEqual(
      lines.slice(start + 1).filter((line) => /error: |^ {2}\d|imported/.test(line)),
      [
        `${file} (result):5:9: error: unknown property 'x'`,
        "  5 |         x",
        "dir/extra.conf:3:3: error: unknown property 'y'",
        "  3 |   y",
        `  note: imported at ${file} (result):3:5`,
      ],
    );
    const { output } = await migrate("-format", "json");
    const report: { errors: { place: string }[] } = JSON.parse(output);
    assert.deepEqual(
      report.errors.map(({ place }) => place),
      [`${file} (result):5:9`, "dir/extra.conf:3:3"],
    );
  });
}

test("Helm values have no lines of the Corefile that is made of them", async (t) => {
  const values =
    "servers:\n- zones:\n  - zone: .\n  plugins:\n  - name: startup\n    parameters: /bin/true\n";
  const folder = makeTree(t, { "values.yaml": values });
  const { code, errors } = await runPortolan(["migrate", "values.yaml"], { cwd: folder });
  assert.equal(code, 0, errors);
  assert.match(errors, /^values\.yaml \(Corefile\):2:5: Plugin "startup" is removed/m);
});

test("a List from standard input, and a stub domain that is no list", async (t) => {
  const folder = makeTree(t, {
    "kube-dns.yaml": 'kind: ConfigMap\ndata:\n  stubDomains: |\n    {"x": "notalist"}\n',
  });
  const object = { kind: "ConfigMap", data: { Corefile: ".:53 {\n    proxy . 8.8.8.8\n}\n" } };
  const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: [{ kind: "Service" }, object] });
  const listed = await runPortolan(["migrate", "-"], { cwd: folder, input });
  assert.equal(listed.output, ".:53 {\n    forward . 8.8.8.8\n}\n");
  assert.match(listed.errors, /^stdin \(Corefile\):2:5: /);
  const refused = await runPortolan(["migrate", "kube-dns.yaml"], { cwd: folder });
  assert.equal(refused.code, 2);
  assert.equal(refused.errors, 'kube-dns.yaml: stubDomains: "x": a JSON array of strings was expected\n');
});

test("a ConfigMap of a live cluster", async () => {
  await using api = await ApiSimulator.start();
  api.put("configmaps", {
    metadata: { namespace: "kube-system", name: "coredns" },
    data: { Corefile: ".:53 {\n    proxy . 8.8.8.8\n}\n" },
  });
  api.put("configmaps", {
    metadata: { namespace: "kube-system", name: "kube-dns" },
    data: { stubDomains: '{"acme.local":["1.1.1.1"]}' },
  });
  using folder = new CredentialsFolder();
  const kubeconfig = folder.write("config", kubeconfigText({ server: api.url }, {}));
  const migrate = (place: string) => runPortolan(["migrate", "-configmap", place, "-kubeconfig", kubeconfig]);
  const coredns = await migrate("kube-system/coredns");
  assert.equal(coredns.output, ".:53 {\n    forward . 8.8.8.8\n}\n");
  assert.match(coredns.errors, /^kube-system\/coredns \(Corefile\):2:5: /);
  assert.match((await migrate("kube-dns")).output, /^acme\.local:53 \{/m);
  const missing = await migrate("kube-system/nothing");
  assert.equal(missing.code, 2);
  assert.match(missing.errors, /^ConfigMap kube-system\/nothing: /);
});

for (const [words, message] of [
  [["-from", "latest"], /^'latest' is not a version of CoreDNS/],
  [["-from", "1.0.1"], /^CoreDNS 1\.0\.1 is older than 1\.1\.3/],
  [["missing"], /^cannot read the Corefile missing: no such file/],
  [["-format", "xml"], /^unknown format "xml"/],
  [["a", "b"], /^one file at a time/],
] as const) {
  test(`migrate ${words.join(" ")} says what is wrong, with exit code 2`, async (t) => {
    const { code, errors } = await runPortolan(["migrate", ...words], { cwd: makeTree(t, { a: "" }) });
    assert.equal(code, 2);
    assert.match(errors, message);
  });
}

describe("-to-values", () => {
  const VALUES =
    "replicaCount: 3\nrollingUpdate:\n  maxSurge: 25%\nservers:\n- zones:\n  - zone: .\n  plugins:\n  - name: whoami\n";

  test("writes values of the other chart, and what has become of the old ones", async (t) => {
    const cwd = makeTree(t, { "values.yaml": VALUES });
    const { code, output, errors } = await runPortolan(["migrate", "-to-values", "values.yaml"], { cwd });
    assert.deepEqual([code, errors], [0, "rollingUpdate.maxSurge: now updateStrategy.maxSurge\n"]);
    assert.equal(
      output,
      "replicaCount: 3\nupdateStrategy:\n  maxSurge: 25%\nservers:\n  - zones:\n      - zone: .\n    plugins:\n      - name: whoami\n",
    );
  });

  test("ends with 1 for a value that would be lost, as JSON too", async (t) => {
    const cwd = makeTree(t, { "values.yaml": "replicaCount: 3\nserviceType: LoadBalancer\n" });
    const args = ["migrate", "-to-values", "-format", "json", "values.yaml"];
    const { code, output, errors } = await runPortolan(args, { cwd });
    assert.deepEqual([code, errors], [1, ""]);
    const { values, notices } = JSON.parse(output);
    assert.deepEqual(values, { replicaCount: 3 });
    assert.deepEqual(
      notices.map(({ path, severity }: Record<string, string>) => [path, severity]),
      [["serviceType", "refused"]],
    );
    const human = await runPortolan(["migrate", "-to-values", "values.yaml"], { cwd });
    assert.match(human.errors, /^serviceType: refused: the Service is the cluster's own DNS/);
  });

  for (const [title, words, message] of [
    ["without a file", [], /^-to-values takes a file with values of CoreDNS's Helm chart\n/],
    ["with another verb", ["downgrade", "values.yaml"], /^-to-values takes a file/],
    ["for a list", ["list.yaml"], /^list\.yaml: no values of a Helm chart\n$/],
    ["for a file that is not there", ["none.yaml"], /none\.yaml/],
  ] as const) {
    test(`is refused ${title}`, async (t) => {
      const cwd = makeTree(t, { "values.yaml": VALUES, "list.yaml": "- a\n- b\n" });
      const { code, output, errors } = await runPortolan(["migrate", "-to-values", ...words], { cwd });
      assert.deepEqual([code, output], [2, ""]);
      assert.match(errors, message);
    });
  }
});
