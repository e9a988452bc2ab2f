/**
 * The program starts without its cluster, logs the reason, and serves the cluster once it is available; a reload
 * waits for it.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Rcode } from "../../src/dns/numbers.ts";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { CredentialsFolder, kubeconfigText } from "../support/kubernetes-api/credentials-folder.ts";
import { askOverTcp } from "../support/kubernetes-rules.ts";
import { type CorefileWriter, Portolan, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

/** A cluster of one service, at an API that does not listen yet. */
async function absentApi(): Promise<ApiSimulator> {
  const api = await ApiSimulator.start();
  api.put("services", { metadata: { name: "web", namespace: "default" }, spec: { clusterIP: "10.96.0.1" } });
  await api.close();
  return api;
}

/** One block with the cluster, and a zone that needs none. */
function corefile(api: ApiSimulator, startupTimeout: string): CorefileWriter {
  return (port) =>
    [
      `.:${port("dns")} {`,
      "  bind 127.0.0.1",
      `  ready 127.0.0.1:${port("ready")}`,
      `  prometheus 127.0.0.1:${port("metrics")}`,
      `  kubernetes cluster.local {\n    endpoint ${api.url}\n    startup_timeout ${startupTimeout}\n  }`,
      "  hosts /dev/null example.com {\n    192.0.2.1 www.example.com\n  }",
      "}",
    ].join("\n");
}

/** Wants other objects of the cluster, so that they have to be listed. */
function withLabels(written: CorefileWriter): CorefileWriter {
  return (port) => written(port).replace("startup_", "labels !x\n    startup_");
}

const WEB = "web.default.svc.cluster.local.";

/** Longer than a test may take: whoever waited for it would be noticed. */
const NEVER = "10m";

describe("without an API the program", () => {
  it("serves other zones at once, and the cluster when it is there", async () => {
    await using api = await absentApi();
    await using program = await Portolan.start(corefile(api, NEVER));
    assert.equal((await askOverTcp(program, "www.example.com.", "A")).answer.length, 1);
    const unknown = await askOverTcp(program, WEB, "A");
    assert.equal(unknown.rcode, Rcode.SERVFAIL);
    assert.equal(unknown.authority.length, 1);
    assert.deepEqual(await program.page("ready", "/ready"), { status: 503, body: "kubernetes" });
    const details =
      /^kubernetes\nkubernetes cluster\.local\. namespaces: (being listed|not listed, failing since)/;
    assert.match((await program.page("ready", "/ready?verbose")).body, details);
    await program.waitForLog(/\[WARNING\] plugin\/kubernetes: cannot list services: nothing listens at http/);
    await program.waitForLog(
      /\[INFO\] plugin\/kubernetes: waiting for Kubernetes API before starting server/,
    );

    await api.open();
    await program.waitForLog(/watching: services, after/);
    await untilReady(program);
    assert.deepEqual(await program.page("ready", "/ready"), { status: 200, body: "OK" });
    assert.match(
      (await program.page("ready", "/ready?verbose")).body,
      /^OK\nkubernetes cluster\.local\. namespaces: (watching|synced), age \d+s\nkubernetes cluster\.local\. services: /,
    );
    assert.equal((await askOverTcp(program, WEB, "A")).answer.length, 1);
    assert.equal((await askOverTcp(program, "no.default.svc.cluster.local.", "A")).rcode, Rcode.NXDOMAIN);
    const { body } = await program.page("metrics", "/metrics");
    assert.match(body, /coredns_kubernetes_rest_client_requests_total{code="<error>",method="GET",host=/);
    assert.match(body, /portolan_kubernetes_data_age_seconds{zone="cluster.local.",resource="services"}/);
    assert.doesNotMatch(program.log, /unsynced/);
    assert.deepEqual(await program.stop(), { code: 0, signal: null });
  });

  it("says after startup_timeout that it goes on unsynced, and what is awaited", async () => {
    await using api = await absentApi();
    await using program = await Portolan.start(corefile(api, "700ms"));
    await program.waitForLog(
      /waiting for Kubernetes API before starting server\n[\s\S]*\[WARNING\] plugin\/kubernetes: starting server with unsynced Kubernetes API\n.*not listed yet: namespaces \(nothing listens at /,
    );
  });

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it(`ends at once on ${signal}`, async () => {
      await using api = await absentApi();
      await using program = await Portolan.start(corefile(api, NEVER));
      await program.waitForLog(/waiting for Kubernetes API/);
      assert.deepEqual(await program.stop(signal), { code: 0, signal: null });
      assert.doesNotMatch(program.log, /unsynced|Reloading/);
    });

    it(`ends at once on ${signal} while a reload waits`, async () => {
      await using api = await absentApi();
      await api.open();
      await using program = await Portolan.start(corefile(api, NEVER));
      await untilReady(program);
      await api.close();
      program.writeCorefile(withLabels(corefile(api, NEVER))(program.portOf));
      program.program.kill("SIGUSR1");
      // The start may have logged it as well.
      await program.waitForLog(/Reloading[\s\S]*waiting for Kubernetes API/);
      assert.deepEqual(await program.stop(signal), { code: 0, signal: null });
      assert.match(program.log, /Reload abandoned: the server is stopping/);
    });
  }

  it("keeps what it knows over reloads, for the cluster that it knows it of", async () => {
    await using api = await absentApi();
    await api.open();
    await using program = await Portolan.start(corefile(api, "600ms"));
    await untilReady(program);
    await api.close();
    for (let n = 0; n < 2; n++) {
      // By the way that is there, and by another one.
      const log = await program.reload((port) =>
        corefile(api, "600ms")(port).replace("startup_", `apiserver_qps ${50 + n}\n    startup_`),
      );
      assert.doesNotMatch(log, /unsynced Kubernetes API/);
      assert.equal((await askOverTcp(program, WEB, "A")).answer.length, 1);
      assert.equal((await askOverTcp(program, "no.default.svc.cluster.local.", "A")).rcode, Rcode.NXDOMAIN);
      assert.equal((await program.page("ready", "/ready")).status, 200);
      assert.match(
        (await program.page("ready", "/ready?verbose")).body,
        /services: lost since .*Z, age \d+s: nothing listens at/,
      );
    }
    api.delete("services", "default", "web");
    api.put("services", {
      metadata: { name: "new", namespace: "default" },
      spec: { clusterIP: "10.96.0.2" },
    });
    await api.open();
    await program.waitForLog(/watching: services, after/);
    await untilTrue(async () => (await askOverTcp(program, WEB, "A")).rcode === Rcode.NXDOMAIN, {
      what: "the Service is gone",
      log: () => program.log,
    });
    assert.equal((await askOverTcp(program, "new.default.svc.cluster.local.", "A")).answer.length, 1);

    await api.close();
    const log = await program.reload((port) =>
      corefile(api, "600ms")(port).replace("startup_", "labels a=b\n    startup_"),
    );
    assert.match(log, /starting server with unsynced Kubernetes API/);
    assert.equal((await askOverTcp(program, "new.default.svc.cluster.local.", "A")).rcode, Rcode.SERVFAIL);
  });

  it("answers by the old configuration while the new one waits for the cluster", async () => {
    await using api = await absentApi();
    await api.open();
    await using program = await Portolan.start(corefile(api, NEVER));
    await untilReady(program);
    await api.close();
    const reloading = program.reload((port) =>
      corefile(
        api,
        NEVER,
      )(port)
        .replace("192.0.2.1 www", "192.0.2.2 www")
        .replace("startup_", "labels !x\n    startup_"),
    );
    await program.waitForLog(/waiting for Kubernetes API before starting server/);
    assert.equal((await askOverTcp(program, WEB, "A")).answer.length, 1);
    assert.equal((await askOverTcp(program, "no.default.svc.cluster.local.", "A")).rcode, Rcode.NXDOMAIN);
    assert.match(await wwwAddress(program), /192\.0\.2\.1$/);
    assert.equal((await program.page("ready", "/ready")).status, 200);
    await api.open();
    assert.match(await reloading, /Reloading complete/);
    assert.match(await wwwAddress(program), /192\.0\.2\.2$/);
    assert.equal(
      (await askOverTcp(program, WEB, "A")).answer.length,
      1,
      "the new one knows it from the first",
    );
  });

  it("refuses what leads to no cluster at all", async () => {
    using folder = new CredentialsFolder();
    folder.write("config", kubeconfigText({ server: "https://127.0.0.1:1" }, {}));
    for (const [option, message] of [
      ["", /in-cluster configuration: KUBERNETES_SERVICE_HOST/],
      [`kubeconfig ${folder.path}/config other`, /no context "other" among its contexts: it has here/],
      [`kubeconfig ${folder.path}/none`, /kubeconfig .*none: no such file or directory/],
    ] as const) {
      folder.write("Corefile", `.:0 {\n  kubernetes cluster.local {\n    ${option}\n  }\n}\n`);
      const env = { KUBERNETES_SERVICE_HOST: "", KUBERNETES_SERVICE_PORT: "" };
      const { code, output, errors } = await runPortolan(["-conf", `${folder.path}/Corefile`], { env });
      assert.equal(code, 1);
      assert.match(output + errors, message);
    }
  });
});

async function wwwAddress(program: Portolan): Promise<string> {
  const { answer } = await askOverTcp(program, "www.example.com.", "A");
  return answer.map((record) => formatRecord(record)).join();
}

function untilReady(program: Portolan): Promise<void> {
  return untilTrue(async () => (await program.page("ready", "/ready")).status === 200, {
    what: "/ready says 200",
    log: () => program.log,
  });
}
