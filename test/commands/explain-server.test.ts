/** `portolan explain -server` against a server that runs. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import type { Explanation } from "../../src/plugin/contract/explanation.ts";
import { ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan, projectRoot, runPortolan } from "../support/portolan.ts";

const FIXTURE = join(projectRoot, "test", "fixtures", "kubernetes");

/** A server with the cluster of the rules, and an upstream for everything else. */
function start(upstreams: string, options: { readonly pods?: string; readonly more?: string } = {}) {
  const { pods = "verified", more = "" } = options;
  return Portolan.start(
    (port) => `cluster.local:${port("dns")} in-addr.arpa:${port("dns")} {
    bind 127.0.0.1
    explain 127.0.0.1:${port("explain")}
    prometheus 127.0.0.1:${port("metrics")}
    log
    errors
    cache 30
    kubernetes cluster.local in-addr.arpa {
        manifests ${FIXTURE}
        pods ${pods}
    }
    ${more}
}
.:${port("dns")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    log
    errors
    cache 30
    ${more}
    forward . ${upstreams}
}
`,
  );
}

function explain(server: Portolan, ...args: readonly string[]) {
  return runPortolan(["explain", ...args, "-server", `127.0.0.1:${server.portOf("explain")}`]);
}

async function explainJson(server: Portolan, ...args: readonly string[]): Promise<Explanation> {
  const { code, output, errors } = await explain(server, ...args, "-json");
  assert.deepEqual([code, errors], [0, ""]);
  return JSON.parse(output);
}

/** Texts of the notes of a plugin. */
function notes({ steps }: Explanation, plugin: string): string[] {
  return steps.filter((step) => step.plugin === plugin).flatMap((step) => step.notes.map(({ text }) => text));
}

describe("portolan explain -server", { concurrency: 2 }, () => {
  test("shows the way through the server as it is now, and leaves no mark in it", async () => {
    const upstream = await ScriptedServer.start((asked) =>
      asked.answer({ answer: [`${asked.name} 300 IN A 192.0.2.5`] }),
    );
    await using stack = new AsyncDisposableStack();
    stack.defer(() => upstream.stop());
    await using server = await start(upstream.address.text);
    const address = upstream.address.text;
    const requests = async () =>
      (await server.page("metrics", "/metrics")).body
        .split("\n")
        .filter((line) =>
          /^coredns_(dns_requests|cache_(hits|misses|requests)|dns_responses)_total/.test(line),
        );
    await ask(server, "before.example.org.");
    const before = await requests();
    const logged = server.log.length;

    const { code, output, errors } = await explain(server, "www.example.org");
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(
      output,
      /server +Portolan-\S+, the running server\n +listener +dns:\/\/127\.0\.0\.1:\d+\n +block +\.:\d+/,
    );
    assert.match(
      output,
      /cache +passes on.*\n +- not in the cache\n +- a client's query would have cached this answer for 30 s\n/,
    );
    assert.match(
      output,
      new RegExp(`- asks ${address} over udp\n +- ${address} answers NOERROR after [\\d.]+ ms`),
    );
    assert.match(output, /;; ANSWER SECTION:\nwww\.example\.org\. +30 +IN +A +192\.0\.2\.5\n/);

    assert.deepEqual(notes(await explainJson(server, "www.example.org"), "cache").slice(0, 1), [
      "not in the cache",
    ]);
    assert.deepEqual(await requests(), before);
    assert.equal(server.log.slice(logged), "");

    await ask(server, "www.example.org.");
    const kept = await explainJson(server, "www.example.org");
    const facts = kept.steps.find(({ plugin }) => plugin === "cache")?.notes[0]?.facts;
    assert.ok(facts !== undefined && typeof facts.age === "number" && typeof facts.ttl === "number");
    assert.equal(facts.age + facts.ttl, 30);
    assert.deepEqual([kept.plugin, kept.server?.threads], ["cache", 1]);
    assert.match(kept.server?.configuration ?? "", /^[0-9a-f]{128}$/);

    await server.reload();
    assert.equal((await explainJson(server, "www.example.org")).message?.rcode, "NOERROR");
    assert.match(
      (await server.page("metrics", "/metrics")).body,
      /^portolan_explain_requests_total\{status="200"\} [1-9]/m,
    );
  });

  test("says which upstreams are down, and how long each was waited for", async () => {
    const dead = `127.0.0.1:${await freePort()}`;
    await using server = await start(`${dead} {\n max_connect_attempts 1\n}`);
    const first = await explainJson(server, "www.example.org");
    assert.equal(first.message?.rcode, "SERVFAIL");
    assert.equal(first.plugin, "forward");
    assert.match(first.error ?? "", /refused/);
    assert.match(notes(first, "forward").join("\n"), /^asks .* over udp\n.*refused.*, after [\d.]+ ms$/);
    // The failure has the upstream probed, twice a second, and more than two probes have to fail.
    let down: string[] = [];
    for (let attempt = 0; attempt < 60 && !(down[0] ?? "").includes("upstreams down"); attempt++)
      down = notes(await explainJson(server, "www.example.org"), "forward");
    assert.match(down[0] ?? "", /^1 of 1 upstreams down: 127\.0\.0\.1:\d+ \(\d+ failed probes\)$/);
    assert.match(down[1] ?? "", /^all upstreams are down: tries .* at random$/);
    assert.doesNotMatch(server.log, /plugin\/errors/);
  });

  test("asks as a pod that the server keeps, with its address and its search path", async () => {
    await using server = await start("127.0.0.1:9");
    const { output } = await explain(server, "web", "-from", "shop/client-1");
    assert.match(output, /^pod shop\/client-1 at 10\.244\.3\.40, glibc\n/);
    assert.match(output, /search +shop\.svc\.cluster\.local svc\.cluster\.local cluster\.local\n/);
    assert.match(
      output,
      /assumed +dnsPolicy ClusterFirst and no dnsConfig: a server does not read those of pods\n/,
    );
    assert.match(output, / 1\. web\.shop\.svc\.cluster\.local\. {2}NOERROR, 1 record \(an answer/);
    assert.match(output, /asked by 10\.244\.3\.40 over UDP/);
    const { code, errors } = await explain(server, "web", "-from", "shop/nobody");
    assert.equal(code, 2);
    assert.match(errors, /refuses: the cluster has no pod shop\/nobody that runs and has an address\n$/);
  });

  test("asks as any pod of a namespace where the server keeps none, and says so", async () => {
    await using server = await start("127.0.0.1:9", { pods: "disabled" });
    const { output } = await explain(server, "web", "-from", "shop/client-1");
    assert.match(output, /^pod shop\/client-1, glibc\n/);
    assert.match(
      output,
      /assumed +that pod shop\/client-1 exists: the server stores no pods without 'pods verified'/,
    );
    assert.match(output, / 1\. web\.shop\.svc\.cluster\.local\. {2}NOERROR/);
    const { errors } = await explain(server, "web", "-from", "shopp/client-1");
    assert.match(errors, /the cluster has no namespace shopp/);
  });

  test("says that one of several threads has answered", async () => {
    await using server = await start("127.0.0.1:9", { more: "multisocket 2" });
    const { output } = await explain(server, "web.shop.svc.cluster.local");
    assert.match(
      output,
      /server +Portolan-\S+, the running server: the first of 2 threads, with its own connections and the shared cache\n/,
    );
  });

  test("tells the listeners of the server for a wrong one", async () => {
    await using server = await start("127.0.0.1:9");
    const { code, errors } = await explain(server, "web", "-listener", "dns://:5");
    assert.equal(code, 2);
    assert.match(
      errors,
      /refuses: -listener dns:\/\/:5: this Corefile listens at dns:\/\/127\.0\.0\.1:\d+\n$/,
    );
  });
});

describe("portolan explain -server refuses", { concurrency: 2 }, () => {
  const run = async (server: string, ...args: readonly string[]) => {
    const { code, output, errors } = await runPortolan(["explain", "web", "-server", server, ...args]);
    assert.deepEqual([code, output], [2, ""]);
    assert.match(errors, /^[^\n]+\n$/, "one line");
    return errors;
  };

  for (const [title, server, message] of [
    ["no address", "", /needs an address/],
    ["what is no address", "web", /not an address with a port, such as 127\.0\.0\.1:8183/],
    ["an invalid port", "127.0.0.1:65536", /not an address with a port/],
    [
      "another machine",
      "10.0.0.1:8183",
      /on loopback only; open a tunnel .*kubectl port-forward pod\/NAME 8183/,
    ],
  ] as const) {
    test(title, async () => assert.match(await run(server), message));
  }

  test("a token without a console", async () => {
    const { errors } = await runPortolan(["explain", "www.example.org", "-token-file", "token"]);
    assert.match(errors, /^-token-file is for a console: name the console with -server/);
  });

  test("flags for a configuration of one's own", async () => {
    assert.match(await run("8183", "-conf", "Corefile"), /^-conf changes how a configuration is run/);
    assert.match(await run("8183", "-again"), /^-again changes/);
  });

  test("where nothing listens", async () => {
    const port = await freePort();
    assert.match(await run(`:${port}`), /nothing listens there .*'explain' or 'console' in its Corefile\?/);
  });

  for (const [title, status, type, message] of [
    [
      "a web server",
      200,
      "text/html",
      /answers 200 with text\/html and is neither an explain endpoint nor a console: add 'explain'/,
    ],
    [
      "a Portolan without explain",
      404,
      "text/plain",
      /answers 404 with text\/plain and is neither an explain endpoint nor a console/,
    ],
  ] as const) {
    test(title, async () => {
      const web = createServer((_request, response) => {
        response.writeHead(status, { "content-type": type }).end("<html></html>");
      });
      web.listen(0, "127.0.0.1");
      await once(web, "listening");
      try {
        assert.match(await run(`127.0.0.1:${(web.address() as AddressInfo).port}`), message);
      } finally {
        web.close();
        web.closeAllConnections();
      }
    });
  }

  for (const [title, words] of [
    ["what breaks off", ""],
    ["what does not speak HTTP", "\u0000\u0001\u0002 hello\r\n\r\n"],
  ] as const) {
    test(title, async () => {
      const tcp = createTcpServer((socket) => {
        socket.on("error", () => undefined);
        socket.end(words);
      });
      tcp.listen(0, "127.0.0.1");
      await once(tcp, "listening");
      try {
        const { port } = tcp.address() as AddressInfo;
        assert.match(
          await run(`127.0.0.1:${port}`),
          /does not speak HTTP \(\w+\): give the address of explain/,
        );
      } finally {
        tcp.close();
      }
    });
  }
});

describe("explain -server asks a console", () => {
  test("that is open, and says that it finds no pods", async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")}
    hosts {
        192.0.2.9 www.example.org
    }
}
`,
    );
    const address = `127.0.0.1:${server.portOf("console")}`;
    const { code, output, errors } = await runPortolan([
      ...["explain", "www.example.org", "-server", address],
    ]);
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(output, /;; ANSWER SECTION:\nwww\.example\.org\. +\d+ +IN +A +192\.0\.2\.9\n/);
    const pod = await runPortolan(["explain", "www.example.org", "-server", address, "-from", "shop/web"]);
    assert.equal(pod.code, 2);
    assert.match(pod.errors, /a console cannot look up pods: give the pod's address/);
    const wrong = await runPortolan([
      "explain",
      "www.example.org",
      "-server",
      address,
      "-listener",
      "dns://192.0.2.1:53",
    ]);
    assert.equal(wrong.code, 2);
    assert.match(wrong.errors, /192\.0\.2\.1/);
  });

  test("with its token, and doctor prints commands with the flags that it was given", async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console :${port("console")} {
        token_file token
    }
    whoami
}
`,
      { files: { token: "a token of many letters\n" } },
    );
    const flags = ["-server", `127.0.0.1:${server.portOf("console")}`];
    const token = ["-token-file", join(server.folder, "token")];
    const refused = await runPortolan(["explain", "example.org", ...flags]);
    assert.equal(refused.code, 2);
    assert.match(refused.errors, /the console needs a token: give -token-file FILE/);
    const asked = await runPortolan(["explain", "example.org", ...flags, ...token]);
    assert.deepEqual([asked.code, asked.errors], [0, ""]);
    assert.match(asked.output, /whoami/);
    const doctor = await runPortolan(["doctor", ...flags, ...token, "-for", "1s", "-format", "json"]);
    const { notExamined }: Diagnosis = JSON.parse(doctor.output);
    assert.equal(
      notExamined.find(({ code }) => code === "probes")?.reason.split(", with ")[1],
      `portolan doctor ${[...flags, ...token].join(" ")} -for 1s -manifest FILE`,
    );
  });
});
