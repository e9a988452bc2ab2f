/**
 * The chain of 2019 (docs/spec/kube-dns.md#istio): the cluster's DNS server, Istio's CoreDNS and its plugin, with the Corefiles that articles of the time
 * print.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { freePort } from "../support/free-ports.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Peer } from "../support/peers.ts";
import { Portolan, portolan, runPortolan } from "../support/portolan.ts";
import type { Program } from "../support/program.ts";

const ENTRY = {
  apiVersion: "networking.istio.io/v1alpha3",
  kind: "ServiceEntry",
  metadata: { name: "test-global", namespace: "default" },
  spec: {
    hosts: ["*.test.global"],
    addresses: ["127.255.0.2"],
    location: "MESH_INTERNAL",
    resolution: "DNS",
    ports: [{ number: 8080, name: "http1", protocol: "HTTP" }],
    endpoints: [{ address: "47.111.38.80", ports: { http1: 15443 } }],
  },
};

/** The middle hop, as the charts of Istio 1.1 to 1.4 and of the versions after had it. */
const MIDDLE: Readonly<Record<string, (plugin: number, upstream: string) => string>> = {
  "proxy with protocol grpc": (plugin, upstream) => `
  proxy global 127.0.0.1:${plugin} {
    protocol grpc insecure
  }
  proxy . ${upstream}`,
  "grpc and forward": (plugin, upstream) => `
  grpc global 127.0.0.1:${plugin}
  forward . ${upstream} {
    except global
  }`,
};

describe("the chain of 2019", { skip: skipWithout("unbound") }, () => {
  let api: ApiSimulator;
  let plugin: Program;
  let pluginPort: number;
  let outside: Peer;
  before(async () => {
    api = await ApiSimulator.start();
    api.put("serviceentries", ENTRY);
    pluginPort = await freePort();
    outside = await Peer.unbound(["www.example. 300 A 192.0.2.1"], ["local-zone: example. static"]);
    const folder = await Portolan.start((port) => `.:${port("dns")} {\n bind 127.0.0.1\n whoami\n}`, {
      files: { kubeconfig: kubeconfig(api.url) },
    });
    await folder.stop();
    plugin = portolan([
      "istio-coredns",
      "--kubeconfig",
      `${folder.folder}/kubeconfig`,
      "--port",
      `${pluginPort}`,
    ]);
    await plugin.waitForErrors(
      /Have 1 service entries[\s\S]*adding DNS mapping: \.test\.global\.->\[127\.255\.0\.2\]/,
    );
    await folder[Symbol.asyncDispose]();
  });
  after(async () => {
    await plugin?.[Symbol.asyncDispose]();
    await outside?.[Symbol.asyncDispose]();
    await api?.[Symbol.asyncDispose]();
  });

  for (const [what, middle] of Object.entries(MIDDLE)) {
    test(`service1.test.global through the block global:53 of the main server, by ${what}`, async () => {
      const upstream = `127.0.0.1:${outside.port}`;
      await using istio = await Portolan.start(
        (port) => `.:${port("dns")} {
  bind 127.0.0.1
  errors
  health 127.0.0.1:${port("health")}
  ${middle(pluginPort, upstream)}
  prometheus 127.0.0.1:${port("metrics")}
  cache 30
  reload
}
`,
      );
      await using main = await Portolan.start(
        (port) => `.:${port("dns")} {
    bind 127.0.0.1
    errors
    health 127.0.0.1:${port("health")}
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint ${api.url}
        pods insecure
        upstream
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus 127.0.0.1:${port("metrics")}
    proxy . ${upstream}
    cache 30
    loop
    reload
    loadbalance
}
global:${port("dns")} {
    bind 127.0.0.1
    errors
    cache 30
    proxy . 127.0.0.1:${istio.port}
}
`,
      );
      const answer = await dig(main, "service1.test.global", "A");
      assert.deepEqual(
        [answer.status, answer.answer],
        ["NOERROR", ["service1.test.global. 30 IN A 127.255.0.2"]],
      );
      const six = await dig(main, "service1.test.global", "AAAA");
      assert.deepEqual([six.status, six.answer], ["NOERROR", []]);
      assert.equal((await dig(main, "other.global", "A")).status, "NXDOMAIN");
      assert.deepEqual((await dig(main, "www.example", "A")).answer, ["www.example. 30 IN A 192.0.2.1"]);
      assert.deepEqual((await dig(istio, "www.example", "A")).answer, ["www.example. 30 IN A 192.0.2.1"]);
      const metrics = await istio.page("metrics", "/metrics");
      assert.match(
        metrics.body,
        new RegExp(`^coredns_grpc_requests_total\\{to="127.0.0.1:${pluginPort}"\\} [1-9]`, "m"),
      );
      assert.match(main.log, /'proxy'.*write 'forward/);
      if (what.startsWith("proxy")) assert.match(istio.log, /'proxy'.*write 'grpc global/);
    });
  }

  test("a change of the entries is answered at once", async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {\n bind 127.0.0.1\n grpc . 127.0.0.1:${pluginPort}\n}`,
    );
    api.put("serviceentries", {
      ...ENTRY,
      metadata: { name: "other", namespace: "default" },
      spec: { ...ENTRY.spec, hosts: ["other.global"], addresses: ["127.255.0.3"] },
    });
    await plugin.waitForErrors(/adding DNS mapping: other\.global\.->\[127\.255\.0\.3\]/);
    assert.deepEqual((await dig(server, "other.global", "A")).answer, [
      "other.global. 3600 IN A 127.255.0.3",
    ]);
    api.delete("serviceentries", "default", "other");
    await plugin.waitForErrors(/Have 2 service entries[\s\S]*Have 1 service entries/);
    assert.equal((await dig(server, "other.global", "A")).status, "NXDOMAIN");
  });
});

test("a word that istio-coredns does not know, and a cluster that is not there, end it in one line", async () => {
  for (const [words, message, code] of [
    [["--bogus"], /^flag provided but not defined: -bogus\n/, 2],
    [["--default-address", "x"], /^invalid value "x" for flag -default-address: not an IP address\n/, 2],
    [["extra"], /^extra command line arguments: \[extra\]\n/, 2],
    [["--kubeconfig", "/nowhere/config", "--port", "0"], /kubeconfig \/nowhere\/config: .*no such file/, 1],
    [["--port", "0"], /KUBERNETES_SERVICE_HOST|not in a pod|cluster/, 1],
  ] as const) {
    const ending = await runPortolan(["istio-coredns", ...words], { env: { KUBERNETES_SERVICE_HOST: "" } });
    assert.equal(ending.code, code, words.join(" "));
    assert.match(ending.errors, message);
  }
});

function kubeconfig(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "one", cluster: { server } }],
    users: [{ name: "me", user: {} }],
    contexts: [{ name: "here", context: { cluster: "one", user: "me" } }],
    "current-context": "here",
  });
}
