/** The commands that `doctor`, `explain`, `check` and the log print: each one runs as it is printed. */
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ask } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { consoleOf, explain } from "../support/on-call.ts";
import { Pod } from "../support/pod-fleet.ts";
import { Portolan, portolanWords, runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

/** Of another name, namespace and container than those of the project's own manifests. */
const DEPLOYMENT = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "edge-dns", namespace: "dns-system" },
  spec: {
    template: {
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: "resolver", resources: { limits: { memory: "16Mi" } } }],
      },
    },
  },
};

test("every command that is printed runs as printed, for the user's own server, token, namespace and Deployment", async () => {
  await using api = await ApiSimulator.start();
  api.account = "system:serviceaccount:dns-system:edge-dns";
  api.permits = ({ resource }) => resource !== "endpointslices" && resource !== "endpoints";
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    errors
    reload 2s 0s
    console 127.0.0.1:${port("console")} {
        token_file "the token"
    }
    kubernetes cluster.local {
        endpoint ${api.url}
        startup_timeout 1s
    }
    cache 300
    forward example.org 127.0.0.1:9
}`,
    {
      files: {
        "the token": "a token that is hard to guess\n",
        "deployment.json": JSON.stringify(DEPLOYMENT),
      },
    },
  );
  await server.waitForLog(/needs the verb/);
  {
    await using pod = await Pod.start(api, server, {
      namespace: "shop",
      name: "web-0",
      address: "127.1.0.1",
    });
    for (let round = 0; round < 30; round++) {
      await pod.ask("storefrnt.shop.svc.cluster.local.");
      await pod.ask("gone$(touch hacked).example.com.");
    }
  }
  assert.equal((await ask(server, "web.shop.svc.cluster.local.")).rcode, 2);
  const corefile = readFileSync(join(server.folder, "Corefile"), "utf8");
  server.writeCorefile(corefile.replace("cache 300", "cach 300"));
  await untilTrue(
    async () => !/"refused":null/.test((await server.page("console", "/api/v1/configuration")).body),
  );

  const where = ["-server", consoleOf(server), "-token-file", "the token"];
  const options = { cwd: server.folder };
  const told = await runPortolan(["doctor", ...where, "-for", "0s", "-manifest", "deployment.json"], options);
  const withoutManifest = await runPortolan(["doctor", ...where, "-for", "0s"], options);
  const checked = await runPortolan(["check", "Corefile"], options);
  const explained = await explain(server, "web.shop.svc.cluster.local");
  const texts = [told.output, withoutManifest.output, checked.output, checked.errors, explained, server.log];
  const commands = commandsIn(texts.join("\n"));

  const tools = fakeTools(server.folder);
  for (const command of commands) {
    const { code, output, errors } = await run("sh", ["-c", command], {
      ...options,
      env: { PATH: `${tools}:${process.env.PATH}` },
    });
    const what = `${command}\n${output}${errors}`;
    // 'check' finds what is wrong, and 'doctor' has findings.
    assert.ok(code === 0 || (code === 1 && /portolan (check|doctor) /.test(command)), what);
    if (command.startsWith("portolan explain")) assert.match(output, /, the running server\n/, what);
  }
  for (const [pattern, least] of [
    [/^portolan explain web\.shop\.svc\.cluster\.local\.|^portolan explain storefrnt/, 1],
    [/^portolan explain .* -server 127\.0\.0\.1:\d+ -token-file 'the token'$/, 1],
    [/^portolan check Corefile$/, 1],
    [/^kubectl -n dns-system patch deployment edge-dns /, 2],
    [
      /^kubectl create clusterrole edge-dns-endpointslices --verb=list,watch --resource=endpointslices\.discovery\.k8s\.io$/,
      1,
    ],
    [/^kubectl create clusterrolebinding .* --serviceaccount=dns-system:edge-dns$/, 1],
  ] as const) {
    const found = commands.filter((command) => pattern.test(command));
    assert.ok(found.length >= least, `${pattern}: ${commands.join("\n")}`);
  }
  const patches = readFileSync(join(tools, "calls"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("patch "));
  for (const line of patches) assert.ok(JSON.parse(line.slice("patch ".length)).spec.template.spec, line);
  assert.ok(patches.length >= 2);
  assert.doesNotMatch(commands.join("\n"), /deployment (portolan|coredns)|kube-system/);
});

/** Each line, or text in quotes, that begins with the name of a program. */
function commandsIn(text: string): string[] {
  const lines = [...text.matchAll(/^ *((?:portolan|kubectl) .+)$/gm)].map(([, command = ""]) => command);
  const behindColon = [...text.matchAll(/: (kubectl .+)$/gm)].map(([, command = ""]) => command);
  const quoted = [...text.matchAll(/'((?:portolan|kubectl) [^']*)'/g)].map(([, command = ""]) => command);
  return [...new Set([...lines, ...behindColon, ...quoted])];
}

/** `portolan` as it is under test, and a `kubectl` that takes what the real one would, and writes down the patches. */
function fakeTools(folder: string): string {
  const tools = join(folder, "tools");
  mkdirSync(tools);
  const words = portolanWords().map((word) => `'${word}'`);
  const write = (name: string, lines: readonly string[]): void => {
    writeFileSync(join(tools, name), `#!/bin/sh\n${lines.join("\n")}\n`);
    chmodSync(join(tools, name), 0o755);
  };
  write("portolan", [`exec ${words.join(" ")} "$@"`]);
  write("kubectl", [
    'case "$*" in',
    '  "create clusterrole "*" --verb="*" --resource="*) ;;',
    '  "create clusterrolebinding "*" --clusterrole="*" --serviceaccount="*:*) ;;',
    `  "-n dns-system patch deployment edge-dns -p "*) printf 'patch %s\\n' "$7" >> ${join(tools, "calls")} ;;`,
    `  "-n dns-system get deployment edge-dns -o yaml") cat ${join(folder, "deployment.json")} ;;`,
    '  "-n shop patch "*" -p "*) ;;',
    '  *) echo "unexpected: $*" >&2; exit 3 ;;',
    "esac",
  ]);
  return tools;
}
