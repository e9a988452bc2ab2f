/** `kubectl portolan`: kubectl itself runs bin/kubectl-portolan, against an API with pods whose ports lead to a server. */
import assert from "node:assert/strict";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import { ask } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { Kubectl, skipWithoutKubectl } from "../support/kubernetes-api/kubectl.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

const PATH = [join(projectRoot, "bin"), process.env.PATH].join(delimiter);

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("kubectl portolan", { skip: skipWithoutKubectl }, () => {
  let api: ApiSimulator;
  let kubectl: Kubectl;
  let server: Portolan;

  const addPod = (namespace: string, name: string, label: string, ready: "True" | "False"): void => {
    api.put("pods", {
      metadata: { name, namespace, labels: { "app.kubernetes.io/name": label } },
      spec: { containers: [{ name: "portolan" }] },
      status: { phase: "Running", conditions: [{ type: "Ready", status: ready }] },
    });
  };

  before(async () => {
    api = await ApiSimulator.start();
    kubectl = new Kubectl([`--server=${api.url}`, "--token=secret"], { PATH });
    server = await Portolan.start(
      (port) => `.:${port("dns")} {\n bind 127.0.0.1\n console 127.0.0.1:${port("console")}\n whoami\n}\n`,
    );
    addPod("kube-system", "portolan-a", "portolan", "False");
    addPod("kube-system", "portolan-b", "portolan", "True");
    addPod("kube-system", "another", "other", "True");
    addPod("dns", "only", "portolan", "False");
    for (const pod of ["kube-system/portolan-b", "dns/only"])
      api.forwardPort(pod, 8184, server.portOf("console"));
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    kubectl?.[Symbol.dispose]();
    await api?.close();
  });

  test("explain asks the pod that is ready, and says which one that is", async () => {
    const { code, output, errors } = await kubectl.end(["portolan", "explain", "www.example", "TXT"]);
    assert.match(errors, /^pod portolan-b, one of 2: another one with --pod\n/);
    assert.equal(code, 0, errors);
    assert.match(output, /whoami/);
  });

  test("top shows what the server does; -n is the namespace, and a pod that is not ready will do", async () => {
    await ask(server, "seen.example.");
    const { code, output, errors } = await kubectl.end(["portolan", "top", "-n", "dns", "-count", "1"]);
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(output, / seen\.example\.\n/);
  });

  test("tail prints queries as they come, with its own flags", async () => {
    const flags = ["--namespace=dns", "-name", "wanted.example", "-count", "1"];
    await using tail = kubectl.start(["portolan", "tail", ...flags]);
    await untilTrue(async () => {
      if (!tail.hasEnded) for (const name of ["other.example.", "wanted.example."]) await ask(server, name);
      return tail.hasEnded;
    });
    assert.equal((await tail.ended).code, 0, tail.errors);
    assert.match(tail.output, /wanted\.example\./);
    assert.doesNotMatch(tail.output, /other\.example/);
  });

  test("doctor diagnoses, and its exit code is that of the command", async () => {
    const flags = ["--pod", "portolan-b", "-for", "1s", "-format", "json", "-probe=false"];
    const { code, output, errors } = await kubectl.end(["portolan", "doctor", ...flags]);
    assert.equal(errors, "");
    const { findings }: Diagnosis = JSON.parse(output);
    assert.equal(code, findings.length > 0 ? 1 : 0);
  });

  test("console prints an address that answers until it is stopped, and leaves nothing behind", async () => {
    await using console = kubectl.start(["portolan", "console", "-n", "dns"]);
    const [, url = ""] = await console.waitForOutput(/^(http:\/\/127\.0\.0\.1:\d+\/)$/m);
    assert.equal((await fetch(url, { signal: AbortSignal.timeout(10_000) })).status, 200);
    console.kill("SIGTERM");
    await console.ended;
    await untilTrue(() =>
      fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
        () => false,
        () => true,
      ),
    );
  });

  for (const [title, args, message] of [
    [
      "a namespace without pods",
      ["top", "-n", "default"],
      /^no pod in default runs with the label app\.kubernetes\.io\/name=portolan: name the namespace with -n/,
    ],
    [
      "a pod without the port",
      ["top", "-n", "dns", "--port", "9"],
      /cannot be asked|nothing listens|refused|reset|ended|closed/i,
    ],
    [
      "a pod that does not exist",
      ["top", "--pod", "none"],
      /"none" not found[\s\S]*cannot forward a port to pod none/,
    ],
    [
      "an unknown command",
      ["tial"],
      /^kubectl portolan has no command "tial": explain, doctor, tail, top, console\n/,
    ],
    ["no command", [], /^Usage: kubectl portolan explain NAME/],
    ["a flag without its value", ["top", "-n"], /^-n needs a value\n/],
    [
      "a server of one's own",
      ["top", "-server", "127.0.0.1:1"],
      /^kubectl portolan finds the server itself: leave -server out\n/,
    ],
  ] as const) {
    test(`refuses ${title}`, async () => {
      const { code, output, errors } = await kubectl.end(["portolan", ...args]);
      assert.deepEqual([code, output], [2, ""], errors);
      assert.match(errors, message);
    });
  }

  test("doctor gets the manifest of the server, and kubectl the context, from a shell of any kind", async (t) => {
    // A kubectl that notes what it is asked: the API of the tests has no Deployments.
    const folder = makeTree(t, {
      kubectl: `#!/bin/sh
printf '%s\\n' "$*" >> "$NOTES"
case "$*" in
  *port-forward*) echo $$ > "$NOTES.pid"; echo "Forwarding from 127.0.0.1:${server.portOf("console")} -> 8184"; exec sleep 60 ;;
  *deployments,daemonsets*) printf 'apiVersion: v1\\nkind: List\\nitems:\\n- apiVersion: apps/v1\\n  kind: Deployment\\n  metadata:\\n    name: portolan\\n' ;;
  *"get pods"*) echo "portolan-b True" ;;
esac
`,
      portolan:
        '#!/bin/sh\necho "$@"\nwhile [ $# -gt 0 ]; do [ "$1" != -manifest ] || cat "$2"; shift; done\nexit 1\n',
    });
    for (const name of ["kubectl", "portolan"]) chmodSync(join(folder, name), 0o755);
    const notes = join(folder, "notes");
    writeFileSync(notes, "");
    const env = { PATH: [folder, process.env.PATH].join(delimiter), NOTES: notes };
    const words = [
      join(projectRoot, "bin", "kubectl-portolan"),
      "--context",
      "a b",
      "doctor",
      "-n",
      "dns",
      "-for",
      "1 s",
    ];
    const { code, output, errors } = await run("sh", words, { env });
    assert.deepEqual([code, errors], [1, ""]);
    assert.match(output, /^doctor -for 1 s -manifest \S+ -server 127\.0\.0\.1:\d+\n[\s\S]*kind: Deployment/);
    const forward = Number(readFileSync(`${notes}.pid`, "utf8"));
    await untilTrue(() => !isRunning(forward));
    const asked = readFileSync(notes, "utf8").trim().split("\n");
    assert.equal(asked.length, 3);
    for (const line of asked) assert.match(line, /^--context=a b -n dns /);
  });
});
