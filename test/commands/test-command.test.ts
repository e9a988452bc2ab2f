/** `portolan test` as its users call it. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { portolan, projectRoot, runPortolan } from "../support/portolan.ts";

const COREFILE = `corefile: |
  . {
      errors
      hosts /etc/hosts local.example {
          fallthrough
      }
      forward . 192.0.2.1 192.0.2.2:53 {
          policy sequential
      }
      cache 30
  }
  cluster.local:1053 {
      kubernetes cluster.local
  }
`;

const FIXTURES = `fixtures:
  hosts: 192.0.2.7 app.local.example
  time: 2026-05-06T00:00:00Z
  manifests: |
    apiVersion: v1
    kind: Service
    metadata: { name: web, namespace: shop }
    spec: { clusterIP: 10.96.0.7, ports: [{ name: http, port: 80 }] }
  upstreams:
    192.0.2.1: { down: true }
    192.0.2.2: |
      a.example. 60 IN A 192.0.2.9
      b.example. 60 IN CNAME a.example.
`;

const CASES = `cases:
  - name: the second upstream stands in for the first
    query: b.example
    expect:
      answer: |
        a.example. A 192.0.2.9
        b.example. CNAME a.example.
      flags: rd ra
      plugin: forward
      upstream: [192.0.2.1, 192.0.2.2]
  - name: and is kept
    query: b.example
    advance: 20s
    expect: { ttl: 8-11, plugin: cache, upstream: none }
  - name: hosts from the fixture
    query: app.local.example
    expect: { answer: app.local.example. 30 A 192.0.2.7, plugin: hosts }
  - name: the cluster from the fixture
    query: _http._tcp.web.shop.svc.cluster.local SRV
    listener: dns://:1053
    expect:
      answer: _http._tcp.web.shop.svc.cluster.local. 5 IN SRV 0 100 80 web.shop.svc.cluster.local.
      additional: web.shop.svc.cluster.local. A 10.96.0.7
  - name: the clock of the fixture
    query: cluster.local SOA
    listener: dns://:1053
    expect:
      answer: cluster.local. SOA ns.dns.cluster.local. hostmaster.cluster.local. 1778025595 7200 1800 86400 5
`;

const FAILING = `cases:
  - name: passes
    query: app.local.example
    expect: { answer: app.local.example. A 192.0.2.7 }
  - name: fails # here
    query: app.local.example
    expect:
      rcode: NXDOMAIN
      answer: |
        app.local.example. 30 A 192.0.2.8
        app.local.example. 30 A 192.0.2.7
      flags: ad
      ttl: 1-2
      plugin: hosts
  - name: why
    query: nosuch.shop.svc.cluster.local
    listener: dns://:1053
    expect: { upstream: 192.0.2.1 }
`;

function runTests(t: TestContext, files: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const folder = makeTree(t, files);
  return runPortolan(["test", ...args, ...Object.keys(files)], { cwd: folder });
}

describe("portolan test", { concurrency: 2 }, () => {
  test("the quickstart passes its tests", async () => {
    const file = join(projectRoot, "examples/quickstart/dns-test.yaml");
    const { code, output, errors } = await runPortolan(["test", file]);
    assert.deepEqual([code, errors], [0, ""], output);
    assert.match(output, /\n {2}ok {4}a Service has the address of its clusterIP\n/);
    assert.match(output, /\n6 passed\n$/);
  });

  test("upstreams, hosts, cluster and clock are those of the fixtures", async (t) => {
    const { code, output, errors } = await runTests(t, { "t.yaml": COREFILE + FIXTURES + CASES });
    assert.deepEqual([code, errors], [0, ""], output);
    assert.match(output, /5 passed\n$/);
  });

  test("shows what is not as expected, and what the plugins said", async (t) => {
    const { code, output } = await runTests(t, { "t.yaml": COREFILE + FIXTURES + FAILING });
    assert.equal(code, 1);
    const wanted = `  ok    passes
  FAIL  fails (t.yaml:32)
        asked    app.local.example. A
        rcode
          - NXDOMAIN
          + NOERROR
        answer
          - app.local.example. 30 A 192.0.2.8
        ttl
          - 1-2
          + app.local.example. 30 IN A 192.0.2.7
        flags
          - ad
          + aa rd
        plugin
          - hosts
          + cache
`;
    assert.ok(output.includes(wanted), output);
    assert.match(output, /kubernetes: there is no Service nosuch in namespace shop, nor in any other/);
    assert.match(output, /1 passed, 2 failed\n$/);
  });

  test("TAP and JUnit say the same to programs", async (t) => {
    const files = { "t.yaml": COREFILE + FIXTURES + FAILING };
    const tap = await runTests(t, files, "-format", "tap");
    assert.equal(tap.code, 1);
    assert.match(
      tap.output,
      /^TAP version 14\n1\.\.3\nok 1 - passes\nnot ok 2 - fails\n {2}---\n {2}at: "t\.yaml:32"\n/,
    );
    const junit = await runTests(t, files, "-format", "junit");
    assert.equal(junit.code, 1);
    assert.match(junit.output, /<testsuite name="t\.yaml" tests="3" failures="2" errors="0" time="[\d.]+">/);
    assert.match(
      junit.output,
      /<testcase name="passes" classname="t\.yaml" file="t\.yaml" line="29" time="[\d.]+"\/>/,
    );
    assert.match(junit.output, /<failure message="unexpected rcode, answer, ttl, flags, plugin">asked/);
  });

  test("an upstream that the fixtures say nothing of is named", async (t) => {
    const text =
      'corefile: ". {\\n forward . 192.0.2.1\\n}"\ncases: [{ query: a.example, expect: { answer: a.example. A 192.0.2.9 } }]\n';
    const { code, output } = await runTests(t, { "t.yaml": text });
    assert.equal(code, 1, output);
    assert.match(output, /- NOERROR\n +\+ REFUSED/);
    assert.match(
      output,
      /192\.0\.2\.1 was asked for a\.example\. A, and fixtures\.upstreams has no answers for it/,
    );
  });

  for (const [title, text, message] of [
    ["no YAML", "corefile: [", /t\.yaml:1: not valid YAML/],
    [
      "a mistyped key",
      `${COREFILE}${FIXTURES}cases: [{ querry: a }]\n`,
      /unknown key "querry": did you mean "query"\?/,
    ],
    ["a faulty Corefile", 'corefile: ". {\\n hots\\n}"\ncases: [{ query: a, expect: {} }]\n', /'hots'/],
    [
      "a Corefile that is not there",
      "corefile: Nowhere\ncases: [{ query: a, expect: {} }]\n",
      /cannot read the Corefile .*Nowhere: no such file/,
    ],
    [
      "a live cluster",
      `${COREFILE}cases: [{ query: a, expect: {} }]\n`,
      /asks a live cluster, which a test must not/,
    ],
    [
      "a fixture for nothing",
      'corefile: ". {\\n whoami\\n}"\nfixtures: { hosts: a, upstreams: { 192.0.2.1: "" } }\ncases: [{ query: a, expect: {} }]\n',
      /fixtures\.hosts: the Corefile has no hosts directive.*no forward of the Corefile sends queries to 192\.0\.2\.1; it forwards nowhere/s,
    ],
    [
      "a listener that is not there",
      'corefile: ". {\\n whoami\\n}"\ncases: [{ query: a, listener: "dns://:1", expect: {} }]\n',
      /t\.yaml:2: nothing listens at dns:\/\/:1; the Corefile listens at dns:\/\/:53/,
    ],
  ] as const) {
    test(`cannot run ${title}`, async (t) => {
      const { code, output } = await runTests(t, { "t.yaml": text });
      assert.equal(code, 2, output);
      assert.match(output, /^cannot run t\.yaml\n/);
      assert.match(output, message);
    });
  }

  for (const [path, reason] of [
    ["nowhere", "no such file"],
    ["binary", "is not a text file"],
  ] as const) {
    test(`cannot run with manifests of which is to be said: ${reason}`, async (t) => {
      const text = `corefile: ". {\\n kubernetes cluster.local\\n}"\nfixtures: { manifests: ${path} }\ncases: [{ query: a, expect: {} }]\n`;
      const { code, output } = await runTests(t, { "t.yaml": text, binary: "a\0b" });
      assert.equal(code, 2, output);
      assert.ok(output.includes(`t.yaml: fixtures.manifests: cannot read ${path}: ${reason}\n`), output);
    });
  }

  test("what docs/test.md shows passes", async (t) => {
    const text = readFileSync(join(projectRoot, "docs/test.md"), "utf8");
    const shown = fencedBlocks(text).find(({ language }) => language === "yaml")?.text ?? assert.fail("none");
    const { code, output } = await runTests(t, { "t.yaml": shown });
    assert.equal(code, 0, output);
    assert.match(output, /3 passed\n$/);
  });

  test("-watch runs again when the Corefile has changed, and when the tests have", async (t) => {
    const tests = "corefile: Corefile\ncases: [{ query: a.example, expect: { answer: [] } }]\n";
    const folder = makeTree(t, { Corefile: ".:53 {\n    whoami\n}\n", "t.yaml": tests });
    await using program = portolan(["test", "-watch", "t.yaml"], { cwd: folder });
    await program.waitForOutput(/\n1 passed\n/);
    let printed = program.output.length;
    writeFileSync(join(folder, "Corefile"), "example.org:53 {\n    whoami\n}\n");
    await program.waitForOutput(/\n0 passed, 1 failed\n/, printed);
    printed = program.output.length;
    writeFileSync(join(folder, "t.yaml"), tests.replace("{ answer", "{ rcode: REFUSED, answer"));
    await program.waitForOutput(/\n1 passed\n/, printed);
    await program.stop();
  });

  test("one file that cannot be run keeps no other from running", async (t) => {
    const { code, output } = await runTests(t, { "a.yaml": "", "b.yaml": COREFILE + FIXTURES + CASES });
    assert.equal(code, 2);
    assert.match(output, /5 passed, 1 file not run\n$/);
  });

  for (const [args, message] of [
    [["test"], /FILE is missing: which tests shall run\?\n.*Usage:/s],
    [["test", "-format", "xml", "a"], /unknown format "xml": human, tap, junit/],
  ] as const) {
    test(`refuses ${args.join(" ")}`, async () => {
      const { code, errors } = await runPortolan(args);
      assert.equal(code, 2);
      assert.match(errors, message);
    });
  }
});
