/** `portolan explain` as its users call it. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { projectRoot, runPortolan } from "../support/portolan.ts";

const QUICKSTART = join(projectRoot, "examples/quickstart/Corefile");
const RULES = join(projectRoot, "test/fixtures/kubernetes");

const CLUSTER = `cluster.local:53 in-addr.arpa:53 {
    log
    cache 30
    kubernetes cluster.local in-addr.arpa {
        pods verified
        kubeconfig /nowhere/at/all
    }
}
example.org:1053 {
    hosts /does/not/exist {
        192.0.2.7 app.example.org
        fallthrough
    }
    forward . 192.0.2.1 {
        except example.org
    }
}
`;

const NOT_READY = `
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { clusterIP: None }
---
apiVersion: v1
kind: Service
metadata: { name: front, namespace: shop }
spec: { clusterIP: 10.96.0.9 }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: []
endpoints:
  - { addresses: [10.0.0.1], conditions: { ready: false } }
  - { addresses: [10.0.0.2], conditions: { ready: false } }
  - { addresses: [10.0.0.3], conditions: { ready: false } }
`;

function explainCluster(...args: readonly string[]) {
  return runPortolan(["explain", "-conf", "stdin", "-manifests", RULES, ...args], { input: CLUSTER });
}

describe("portolan explain", { concurrency: 2 }, () => {
  test("shows listener, block, plugins in order, and the message", async () => {
    const { code, output, errors } = await runPortolan([
      "explain",
      "storefront.shop.svc.cluster.local",
      "-conf",
      QUICKSTART,
    ]);
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(output, /^storefront\.shop\.svc\.cluster\.local\. A {2}asked by 127\.0\.0\.1 over UDP\n/);
    assert.match(
      output,
      /listener +dns:\/\/127\.0\.0\.1:1053\n +block +\.:1053, .*examples\/quickstart\/Corefile:3\n/,
    );
    assert.match(
      output,
      /errors +passes on.*cache +passes on.*\n +- not in the cache\n.*kubernetes +answers NOERROR +\d/s,
    );
    assert.match(
      output,
      /answer +NOERROR, 1 record, from kubernetes, after [\d.]+ ms\n[\s\S]*\nstorefront\.\S* +30 +IN +A +10\.96\.10\.20\n/,
    );
  });

  for (const [name, type, reason] of [
    ["web.default.svc.cluster.local", "A", "Service web exists in namespace shop, not in default"],
    [
      "none.shop.svc.cluster.local",
      "A",
      "Service shop/none is headless: 1 endpoint, not ready, publishNotReadyAddresses is off",
    ],
    ["web.shop.svc.cluster.local", "AAAA", "IPv4 addresses only and no IPv6 address"],
    ["40.3.244.10.in-addr.arpa", "PTR", "pod shop/client-1, which is behind no Service"],
    ["dangling.shop.svc.cluster.local", "A", "an alias of "],
  ] as const) {
    test(`says why there is no ${type} of ${name}`, async () => {
      const { code, output } = await explainCluster(name, type);
      assert.equal(code, 0);
      assert.ok(output.includes(reason), output);
    });
  }

  test("counts endpoints that are not ready", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-explain-"));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "shop.yaml"), NOT_READY);
    const run = (name: string) =>
      runPortolan(["explain", name, "-conf", "stdin", "-manifests", folder], {
        input: "cluster.local:53 {\n    kubernetes cluster.local\n}\n",
      });
    assert.match(
      (await run("web.shop.svc.cluster.local")).output,
      /- Service shop\/web is headless: 3 endpoints, none ready, publishNotReadyAddresses is off\n/,
    );
    const { output } = await run("front.shop.svc.cluster.local");
    assert.match(
      output,
      /- Service shop\/front: cluster address 10\.96\.0\.9; no endpoints, so nothing answers there\n/,
    );
    assert.ok(!output.includes("\u001b"), "no colours but on a terminal");
  });

  test("a name that no block takes is refused", async () => {
    const { output } = await explainCluster("example.com", "-listener", "dns://:1053");
    assert.match(output, /block +none: no server block of this listener has the name/);
    assert.match(output, /answer +REFUSED/);
  });

  test("passes on from plugin to plugin, and fails where the chain ends", async () => {
    const { output } = await explainCluster("web.example.org");
    assert.match(output, /listener +dns:\/\/:1053/);
    assert.match(output, /hosts +passes on.*\n +- the name is not in the hosts file/);
    assert.match(output, /forward +fails with SERVFAIL.*\n +- the name is outside of FROM, or matches except: passed on/);
    assert.match(output, /answer +SERVFAIL, from forward/);
    assert.match(output, /plugin\/forward: no next plugin found/);
  });

  test("-again shows what the cache has kept", async () => {
    const { output } = await explainCluster("web.shop.svc.cluster.local", "-again");
    assert.match(output, /cache +answers NOERROR.*\n +- cached 0 s ago; valid for 5 s more/);
    assert.doesNotMatch(output, /kubernetes +answers/);
  });

  test("walks the search path of a pod", async () => {
    const { code, output } = await explainCluster("kubernetes.default", "-from", "shop/client-1");
    assert.equal(code, 0);
    assert.match(output, /^pod shop\/client-1 at 10\.244\.3\.40, glibc\n/);
    assert.match(
      output,
      /search +shop\.svc\.cluster\.local svc\.cluster\.local cluster\.local\n +ndots +5\n/,
    );
    assert.match(
      output,
      / 1\. kubernetes\.default\.shop\.svc\.cluster\.local\. {2}NXDOMAIN\n +2\. kubernetes\.default\.svc\.cluster\.local\. {2}NOERROR, 1 record \(an answer: the search ends here\)\n/,
    );
    assert.match(output, /asked by 10\.244\.3\.40 over UDP/);
  });

  test("walks the default search path of a namespace where the manifests have no Pods", async (t) => {
    const cwd = makeTree(t, { "not-ready.yaml": NOT_READY });
    const args = ["explain", "front", "-conf", "stdin", "-manifests", "not-ready.yaml", "-from"];
    const { code, output } = await runPortolan([...args, "shop/any"], { cwd, input: CLUSTER });
    assert.equal(code, 0);
    assert.match(output, /^pod shop\/any, glibc\n/);
    assert.match(output, /search +shop\.svc\.cluster\.local svc\.cluster\.local cluster\.local\n/);
    assert.match(output, /assumed +dnsPolicy ClusterFirst [^\n]*\n +the manifests have no Pods\n/);
    assert.match(output, / 1\. front\.shop\.svc\.cluster\.local\. {2}NOERROR/);
    const nowhere = await runPortolan([...args, "attic/any"], { cwd, input: CLUSTER });
    assert.match(nowhere.errors, /^-from attic\/any: the manifests have no namespace attic\n$/m);
  });

  test("-json says the same to programs", async () => {
    const { output } = await explainCluster("web.default.svc.cluster.local", "-json");
    const explanation = JSON.parse(output);
    assert.equal(explanation.message.rcode, "NXDOMAIN");
    assert.equal(explanation.plugin, "kubernetes");
    assert.deepEqual(
      explanation.steps.map(({ plugin }: { plugin: string }) => plugin),
      ["log", "cache", "kubernetes"],
    );
    // The noise of the clock is left out.
    for (const { milliseconds } of [...explanation.steps, explanation])
      assert.match(String(milliseconds), /^\d+(\.\d{1,3})?$/);
    const { output: searched } = await explainCluster("web", "-from", "shop/client-1", "-json");
    assert.equal(JSON.parse(searched).attempts.length, 1);
  });

  for (const [title, args, message] of [
    ["no name", [], /NAME is missing: which name shall be explained\?\n.*Usage:/s],
    [
      "an invalid type",
      ["a.example.org", "AA"],
      /^AA is not a record type, such as A, AAAA, SRV or TYPE65280\n/,
    ],
    ["an invalid name", [`${"a".repeat(64)}.org`], /is not a domain name/],
    ["an invalid client", ["a.example.org", "-from", "10.0.0"], /neither an IP address nor NAMESPACE\/POD\n/],
    ["a pod that is not there", ["web", "-from", "shop/nobody"], /no such pod in the manifests; there are /],
    [
      "a listener that is not there",
      ["web", "-listener", "dns://:5"],
      /listens at dns:\/\/:53, dns:\/\/:1053\n/,
    ],
    ["an unknown libc", ["web", "-libc", "bionic"], /unknown libc "bionic": glibc, musl/],
  ] as const) {
    test(`refuses ${title}`, async () => {
      const { code, output, errors } = await explainCluster(...args);
      assert.deepEqual([code, output], [2, ""]);
      assert.match(errors, message);
    });
  }

  test("refuses Corefiles that cannot be run", async () => {
    const run = (input: string) => runPortolan(["explain", "web", "-conf", "stdin"], { input });
    const faulty = await run(". {\n    kubernets\n}\n");
    assert.equal(faulty.code, 2);
    assert.match(faulty.errors, /unknown directive 'kubernets'|kubernetes/);
    const missing = await run(
      ". {\n    kubernetes cluster.local {\n        manifests /does/not/exist\n    }\n}\n",
    );
    assert.equal(missing.code, 2);
    assert.match(
      missing.errors,
      /^stdin:3:19: error: manifests: \/does\/not\/exist: does not exist\n {2}3 \| /,
    );
    const none = await runPortolan(["explain", "web", "-conf", "/does/not/exist"]);
    assert.equal(none.code, 2);
    assert.match(none.errors, /^cannot read the Corefile \/does\/not\/exist: no such file\n$/);
  });

  test("refuses manifests that cannot be read, whether the Corefile has a cluster or not", async (t) => {
    const cwd = makeTree(t, { binary: "a\0b" });
    for (const [path, reason] of [
      ["binary", "is not a text file"],
      ["missing", "no such file"],
    ])
      for (const plugin of ["whoami", "kubernetes cluster.local"]) {
        const input = `. {\n    ${plugin}\n}\n`;
        const args = ["explain", "web", "-conf", "stdin", "-manifests", path ?? ""];
        const { code, errors } = await runPortolan(args, { cwd, input });
        assert.deepEqual([code, errors], [2, `cannot read the manifests ${path}: ${reason}\n`]);
      }
  });
});
