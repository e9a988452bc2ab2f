/** The packaged chart, the values that take CoreDNS's place, and what `helm test` runs. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse } from "yaml";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import {
  Artefacts,
  contentsOfBill,
  contentsOfFolder,
  MAKE_PATIENCE,
  readBill,
  VERSION,
} from "../support/artefacts.ts";
import { at, CHART, chartObjects, chartTests, nameOf, type Part } from "../support/deployment.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const coredns: Part = parse(readFileSync(join(CHART, "values-coredns.yaml"), "utf8"));

describe("the chart as an archive", { skip: skipWithout("tar"), timeout: MAKE_PATIENCE }, () => {
  const made = new Artefacts();
  const archive = made.path(`portolan-chart-${VERSION}.tgz`);
  before(async () => {
    await made.make("chart");
    const { code, errors } = await run("tar", ["-xzf", archive, "-C", made.folder]);
    assert.equal(code, 0, errors);
  });
  after(() => made[Symbol.dispose]());

  test("has the files of its bill of materials", () => {
    const inside = contentsOfFolder(made.path("portolan"));
    const billed = Object.entries(contentsOfBill(readBill(archive)));
    assert.deepEqual(
      inside,
      Object.fromEntries(billed.map(([path, fact]) => [path.replace("portolan/", ""), fact])),
    );
    for (const path of [
      "Chart.yaml",
      "values-coredns.yaml",
      "values.schema.json",
      "templates/tests/ask.yaml",
    ])
      assert.ok(path in inside, path);
  });

  test("names its version", () => {
    const { version, appVersion } = parse(readFileSync(made.path(join("portolan", "Chart.yaml")), "utf8"));
    assert.deepEqual([version, appVersion], [VERSION, VERSION]);
  });

  test("is an artefact of OCI that skopeo can copy", { skip: skipWithout("skopeo") }, async () => {
    const source = `oci-archive:${made.path(`portolan-chart-${VERSION}.oci.tar`)}`;
    const { output, errors } = await run("skopeo", ["inspect", "--raw", source]);
    assert.equal(errors, "");
    const { config, layers } = JSON.parse(output);
    assert.equal(config.mediaType, "application/vnd.cncf.helm.config.v1+json");
    assert.equal(layers[0].mediaType, "application/vnd.cncf.helm.chart.content.v1.tar+gzip");
  });
});

test("values-coredns.yaml names all objects as CoreDNS's are named, and leaves the Service alone", () => {
  const names = chartObjects(coredns).map(nameOf);
  for (const name of ["Deployment coredns", "ConfigMap coredns", "ServiceAccount coredns"])
    assert.ok(names.includes(name), name);
  assert.ok(!names.some((name) => /portolan|^Service /.test(name)), names.join(", "));
});

describe("helm test", () => {
  const [pod, ...others] = chartTests({ image: { repository: "example.org/portolan", tag: "9" } });

  test("is one pod of the image that is tested", () => {
    assert.deepEqual(others, []);
    assert.equal(at(pod, "spec.containers.0.image"), "example.org/portolan:9");
    assert.equal(Object(at(pod, "metadata.annotations"))["helm.sh/hook"], "test");
  });

  test("succeeds with an answer, and fails without one", async () => {
    await using server = await Portolan.start((port) => {
      const zone = "hosts {\n 192.0.2.7 kubernetes.default.svc.cluster.local\n }";
      return `.:${port("dns")} {\n bind 127.0.0.1\n ${zone}\n}\n`;
    });
    const ask = (values: Part = {}) => {
      const [node, ...args] = Object.values(
        Object(at(chartTests(values)[0], "spec.containers.0.command")),
      ).map(String);
      assert.equal(node, "node");
      return run(process.execPath, args, { env: { KUBE_DNS_SERVICE_HOST: `127.0.0.1:${server.port}` } });
    };
    const found = await ask();
    assert.deepEqual([found.code, found.output], [0, "kubernetes.default.svc.cluster.local 192.0.2.7\n"]);
    const lost = await ask({ test: { name: "lost.example" } });
    assert.equal(lost.code, 1);
    assert.match(lost.errors, /lost\.example from 127\.0\.0\.1/);
  });
});
