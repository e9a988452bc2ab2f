/** Corefiles of 2017 to 2019 start as they are and answer, with one warning for each old word that says what to write today. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { dig } from "../support/dig.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Portolan } from "../support/portolan.ts";

const WEB = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "web", namespace: "default" },
  spec: { clusterIP: "10.96.0.80", ports: [{ name: "http", port: 80, protocol: "TCP" }] },
};

const PLACES = [
  ["today", "topology.kubernetes.io/"],
  ["then", "failure-domain.beta.kubernetes.io/"],
] as const;

/** Lines of the log that are warnings about the Corefile. */
function warnings(log: string, about: string): string[] {
  return log.split("\n").filter((line) => /warning/i.test(line) && line.includes(about));
}

for (const [when, prefix] of PLACES) {
  test(`federation reads zone and region from the node, by the labels of ${when}`, async () => {
    await using api = await ApiSimulator.start();
    api.put("services", WEB);
    api.put("nodes", { metadata: { name: "a-first", labels: {} } });
    for (const [name, zone] of [
      ["b-other", "elsewhere"],
      ["mine", "testcontinent-testreg-testzone"],
    ])
      api.put("nodes", {
        metadata: { name, labels: { [`${prefix}zone`]: zone, [`${prefix}region`]: "testcontinent-testreg" } },
      });
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    errors
    kubernetes cluster.local {
        endpoint ${api.url}
    }
    federation cluster.local {
        myfederation example.com
    }
    hosts {
        192.0.2.1 mysvc.myns.myfederation.svc.testcontinent-testreg-testzone.testcontinent-testreg.example.com
        fallthrough
    }
}
`,
      { env: { NODE_NAME: "mine" } },
    );
    const target =
      "mysvc.myns.myfederation.svc.testcontinent-testreg-testzone.testcontinent-testreg.example.com.";
    const asked = "mysvc.myns.myfederation.svc.cluster.local.";
    assert.deepEqual((await dig(server, asked, "A")).answer, [
      `${asked} 0 IN CNAME ${target}`,
      `${target} 3600 IN A 192.0.2.1`,
    ]);
    assert.deepEqual((await dig(server, "web.default.myfederation.svc.cluster.local", "A")).answer, [
      "web.default.myfederation.svc.cluster.local. 5 IN A 10.96.0.80",
    ]);
    assert.equal(warnings(server.program.output + server.program.errors, "federation").length, 1);
    const before = api.requests.length;
    await dig(server, "other.myns.myfederation.svc.cluster.local", "A");
    assert.equal(api.requests.length, before, "a node does not move");
  });
}

test("federation without the right to see nodes is SERVFAIL, and says so once for a while", async () => {
  await using api = await ApiSimulator.start();
  api.permits = ({ path }) => !path.includes("/nodes");
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    kubernetes cluster.local {
        endpoint ${api.url}
    }
    federation cluster.local {
        myfederation example.com
    }
}
`,
  );
  for (let turn = 0; turn < 3; turn++) {
    const { status } = await dig(server, "mysvc.myns.myfederation.svc.cluster.local", "A");
    assert.equal(status, "SERVFAIL");
  }
  assert.equal(server.log.match(/zone and region of this node: /g)?.length, 1);
});

test("several endpoints serve, with one warning that says what to write today", async () => {
  await using api = await ApiSimulator.start();
  api.put("services", WEB);
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        resyncperiod 5m
        endpoint http://127.0.0.1:${port("nobody")} ${api.url}
        pods insecure
        upstream /etc/resolv.conf
        fallthrough in-addr.arpa ip6.arpa
    }
    proxy . /etc/resolv.conf
    cache 30
}
`,
  );
  // The first endpoint refuses, and names are SERVFAIL until the second one has listed them.
  const deadline = performance.now() + 30_000;
  let { answer } = await dig(server, "web.default.svc.cluster.local", "A");
  while (answer.length === 0 && performance.now() < deadline)
    ({ answer } = await dig(server, "web.default.svc.cluster.local", "A"));
  assert.deepEqual(answer, ["web.default.svc.cluster.local. 5 IN A 10.96.0.80"]);
  const said = server.program.output + server.program.errors;
  for (const word of ["endpoint", "resyncperiod", "upstream", "proxy"])
    assert.equal(warnings(said, `'${word}`).length, 1, `${word}:\n${said}`);
  assert.match(
    said,
    new RegExp(
      `write 'endpoint http://127\\.0\\.0\\.1:${server.portOf("nobody")}', or the address of a load balancer`,
    ),
  );
});
