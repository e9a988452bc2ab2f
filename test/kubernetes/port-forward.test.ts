/** The commands, for a server in a pod whose console and explain endpoint listen on loopback addresses: through `kubectl port-forward`. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import { ask } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Kubectl, skipWithoutKubectl } from "../support/kubernetes-api/kubectl.ts";
import { Portolan, portolan, runPortolan } from "../support/portolan.ts";
import type { Program } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

const POD = "dns-7d89d9b6b8-x2x4z";
/** Ports of the pod: 9 is closed. */
const PORTS = { console: 8184, explain: 8183, none: 9 } as const;

describe("through kubectl port-forward", { skip: skipWithoutKubectl }, () => {
  let api: ApiSimulator;
  let kubectl: Kubectl;
  let server: Portolan;
  let forward: Program;

  before(async () => {
    api = await ApiSimulator.start();
    kubectl = new Kubectl([`--server=${api.url}`, "--token=secret"]);
    server = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")}
    explain 127.0.0.1:${port("explain")}
    whoami
}
`,
    );
    api.put("pods", {
      metadata: { name: POD, namespace: "kube-system" },
      spec: { containers: [{ name: "portolan" }] },
      status: { phase: "Running" },
    });
    for (const name of ["console", "explain", "none"] as const)
      api.forwardPort(`kube-system/${POD}`, PORTS[name], server.portOf(name));
    const ports = Object.values(PORTS).map((port) => `:${port}`);
    forward = kubectl.start(["-n", "kube-system", "port-forward", `pod/${POD}`, ...ports]);
    await forward.waitForOutput(/127\.0\.0\.1:\d+ -> 9$/m);
  });
  after(async () => {
    await forward?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    kubectl?.[Symbol.dispose]();
    await api?.close();
  });

  const reached = (name: keyof typeof PORTS): string => {
    const port = new RegExp(`^Forwarding from (127\\.0\\.0\\.1:\\d+) -> ${PORTS[name]}$`, "m");
    return port.exec(forward.output)?.[1] ?? "";
  };

  test("top shows what the server does", async () => {
    await ask(server, "seen.example.");
    const { code, output, errors } = await runPortolan(["top", "-server", reached("console"), "-count", "1"]);
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(output, /queries\/s/);
    assert.match(output, / seen\.example\.\n/);
  });

  test("tail prints queries as they come", async () => {
    await using tail = portolan(["tail", "-server", reached("console")]);
    for (const name of ["first.example.", "second.example."])
      await untilTrue(async () => {
        if (!tail.output.includes(name)) await ask(server, name);
        return tail.output.includes(name);
      });
    assert.equal(tail.errors, "");
  });

  test("doctor diagnoses, and explain tells the way of a query", async () => {
    const doctor = await runPortolan([
      ...["doctor", "-server", reached("console"), "-for", "1s", "-format", "json", "-probe=false"],
    ]);
    assert.equal(doctor.errors, "");
    const { findings, observed }: Diagnosis = JSON.parse(doctor.output);
    assert.ok(observed.rows > 0);
    assert.equal(doctor.code, findings.length > 0 ? 1 : 0);
    const explain = await runPortolan(["explain", "why.example", "-server", reached("explain")]);
    assert.deepEqual([explain.code, explain.errors], [0, ""]);
    assert.match(explain.output, /whoami/);
  });

  test("a closed port of the pod is reported as such", async () => {
    const { code, errors } = await runPortolan(["top", "-server", reached("none"), "-count", "1"]);
    assert.equal(code, 2);
    assert.match(errors, /^-server 127\.0\.0\.1:\d+: the connection was closed\n/);
    await forward.waitForErrors(/an error occurred forwarding \d+ -> 9: .*ECONNREFUSED/);
  });
});
