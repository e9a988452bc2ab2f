/** The program starts without its cluster, says why, and has it when it comes. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Rcode } from "../../src/dns/numbers.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { CredentialsFolder, kubeconfigText } from "../support/kubernetes-api/credentials-folder.ts";
import { askOverTcp } from "../support/kubernetes-rules.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";

describe("without an API the program", () => {
  it("serves other zones after the time of startup_timeout, and the cluster when it is there", async () => {
    const api = await ApiSimulator.start();
    api.put("services", {
      metadata: { name: "web", namespace: "default" },
      spec: { clusterIP: "10.96.0.1" },
    });
    await api.close();
    try {
      await using program = await Portolan.start((port) =>
        [
          `.:${port("dns")} {`,
          "  bind 127.0.0.1",
          `  ready 127.0.0.1:${port("ready")}`,
          `  prometheus 127.0.0.1:${port("metrics")}`,
          `  kubernetes cluster.local {\n    endpoint ${api.url}\n    startup_timeout 1200ms\n  }`,
          "  hosts /dev/null example.com {\n    192.0.2.1 www.example.com\n  }",
          "}",
        ].join("\n"),
      );
      assert.match(
        program.log,
        /\[WARNING\] plugin\/kubernetes: cannot list services: nothing listens at http/,
      );
      assert.match(
        program.log,
        /\[INFO\] plugin\/kubernetes: waiting for Kubernetes API before starting server/,
      );
      assert.match(
        program.log,
        /\[WARNING\] plugin\/kubernetes: starting server with unsynced Kubernetes API/,
      );
      assert.equal((await askOverTcp(program, "www.example.com.", "A")).answer.length, 1);
      assert.equal((await askOverTcp(program, "web.default.svc.cluster.local.", "A")).rcode, Rcode.SERVFAIL);
      assert.deepEqual(await program.page("ready", "/ready"), { status: 503, body: "kubernetes" });

      await api.open();
      await program.waitForLog(/watching: services, after/);
      while ((await program.page("ready", "/ready")).status !== 200);
      assert.equal((await askOverTcp(program, "web.default.svc.cluster.local.", "A")).answer.length, 1);
      assert.equal((await askOverTcp(program, "no.default.svc.cluster.local.", "A")).rcode, Rcode.NXDOMAIN);
      const { body } = await program.page("metrics", "/metrics");
      assert.match(body, /coredns_kubernetes_rest_client_requests_total{code="<error>",method="GET",host=/);
      assert.match(body, /portolan_kubernetes_data_age_seconds{zone="cluster.local.",resource="services"}/);
      assert.deepEqual(await program.stop(), { code: 0, signal: null });
    } finally {
      await api.close();
    }
  });

  it("refuses what leads to no cluster at all", async () => {
    using folder = new CredentialsFolder();
    folder.write("config", kubeconfigText({ server: "https://127.0.0.1:1" }, {}));
    for (const [option, message] of [
      ["", /in-cluster configuration: KUBERNETES_SERVICE_HOST/],
      [`kubeconfig ${folder.path}/config other`, /no context "other" among its contexts: it has here/],
      [`kubeconfig ${folder.path}/none`, /kubeconfig .*none: ENOENT/],
    ] as const) {
      folder.write("Corefile", `.:0 {\n  kubernetes cluster.local {\n    ${option}\n  }\n}\n`);
      const env = { KUBERNETES_SERVICE_HOST: "", KUBERNETES_SERVICE_PORT: "" };
      const { code, output, errors } = await runPortolan(["-conf", `${folder.path}/Corefile`], { env });
      assert.equal(code, 1);
      assert.match(output + errors, message);
    }
  });
});
