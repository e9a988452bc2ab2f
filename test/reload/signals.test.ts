/** The effects of signals on the program: reload, lame duck, the end and its exit code. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { rcodeName } from "../../src/dns/numbers.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { ask, exchangeUdp, queryOctets, TcpClient } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan, portolan } from "../support/portolan.ts";
import type { Program } from "../support/program.ts";

const FEW_AT_ONCE = { concurrency: 3 };

describe("signals that end the program", FEW_AT_ONCE, () => {
  const whoami = (): Promise<Portolan> => Portolan.start((port) => `.:${port("dns")} {\n  whoami\n}\n`);

  for (const [signal, line] of [
    ["SIGTERM", "[INFO] SIGTERM: Shutting down servers then terminating"],
    ["SIGINT", "[INFO] SIGINT: Shutting down"],
    ["SIGQUIT", "[INFO] SIGQUIT: Quitting process immediately"],
  ] as const) {
    test(`${signal}: exit code 0`, async () => {
      await using server = await whoami();
      assert.deepEqual(await server.stop(signal), { code: 0, signal: null });
      assert.ok(server.log.endsWith(`${line}\n`), server.log);
      assert.equal(server.program.errors, "");
    });
  }

  test("SIGHUP and SIGUSR2: it runs on", async () => {
    await using server = await whoami();
    server.program.kill("SIGHUP");
    server.program.kill("SIGUSR2");
    await server.waitForLog(/SIGUSR2/);
    assert.equal((await ask(server, "a.example")).additional.length, 2);
  });

  test("SIGINT twice: exit code 2 at once, lame duck or not", async () => {
    await using server = await Portolan.start(
      (port) =>
        `.:${port("dns")} {\n  whoami\n  health 127.0.0.1:${port("health")} {\n    lameduck 60s\n  }\n}\n`,
    );
    server.program.kill("SIGINT");
    await server.waitForLog(/lameduck mode for 1m0s/);
    assert.deepEqual(await server.stop("SIGINT"), { code: 2, signal: null });
    assert.match(server.log, /\[INFO\] SIGINT: Force quit\n$/);
  });

  test("SIGTERM: lame ducks still answer, and say that they are not ready", async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {
        whoami
        health 127.0.0.1:${port("health")} {
          lameduck 4s
        }
        ready 127.0.0.1:${port("ready")}
      }`,
    );
    assert.deepEqual(await server.page("ready", "/ready"), { status: 200, body: "OK" });
    const start = performance.now();
    server.program.kill("SIGTERM");
    await server.waitForLog(/Going into lameduck mode for 4s/);
    assert.deepEqual(await server.page("ready", "/ready"), { status: 503, body: "Shutting down" });
    assert.deepEqual(await server.page("health", "/health"), { status: 200, body: "OK" });
    assert.equal((await ask(server, "a.example")).additional.length, 2);
    assert.deepEqual(await server.program.end(), { code: 0, signal: null });
    assert.ok(performance.now() - start > 3_900);
  });

  test("SIGTERM: queries under way are answered first", async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {\n  errors\n  erratic {\n    drop 0\n    delay 1 1s\n  }\n}\n`,
    );
    const reply = exchangeUdp(server, queryOctets("a.example", "A", 99));
    // Answered behind the first query, so that this one has arrived.
    await exchangeUdp(server, queryOctets("a.example", "A", 98));
    server.program.kill("SIGTERM");
    assert.ok(await reply, "no reply");
    assert.deepEqual(await server.program.end(), { code: 0, signal: null });
  });

  test("a shutdown command that fails is logged, and the exit code stays 0", async () => {
    await using server = await Portolan.start(
      (port) => `.:${port("dns")} {\n  whoami\n  on shutdown false\n}\n`,
    );
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
    assert.match(server.log, /^\[ERROR\] error on 'shutdown' hook: command "false" .* ended with status 1$/m);
  });

  test("queries that come back to the server: exit code 1, and the word loop", async () => {
    await using program = await startLoop();
    assert.deepEqual(await program.end(), { code: 1, signal: null });
    assert.match(
      program.output,
      /^\[FATAL\] plugin\/loop: Loop \(127\.0\.0\.1:\d+ -> :\d+\) detected for zone "\."/m,
    );
  });

  async function startLoop(): Promise<Program> {
    const port = await freePort();
    return portolan(["-conf", "stdin"], { input: `.:${port} {\n  loop\n  forward . 127.0.0.1:${port}\n}\n` });
  }
});

describe("reload by SIGUSR1", FEW_AT_ONCE, () => {
  const hosts = (address: string) => (port: (name: string) => number) =>
    `.:${port("dns")} {
    bind 127.0.0.1
    errors
    health 127.0.0.1:${port("health")}
    prometheus 127.0.0.1:${port("metrics")}
    hosts {
      ${address} name.example
    }
  }`;
  const answer = async (server: { readonly address: string; readonly port: number }): Promise<string> => {
    const { rcode, answer: records } = await ask(server, "name.example");
    return [rcodeName(rcode), ...records.map(formatData)].join(" ");
  };

  test("a good Corefile is in force, also for connections that are open", async () => {
    await using server = await Portolan.start(hosts("192.0.2.1"));
    await using connection = await TcpClient.connect(server);
    assert.equal(await answer(server), "NOERROR 192.0.2.1");
    assert.equal(
      await server.reload(hosts("192.0.2.2")),
      "[INFO] SIGUSR1: Reloading\n[INFO] Reloading\n[INFO] Reloading complete\n",
    );
    assert.equal(await answer(server), "NOERROR 192.0.2.2");
    connection.send(queryOctets("name.example"));
    assert.deepEqual((await connection.receive())?.subarray(-4), Buffer.from([192, 0, 2, 2]));
  });

  for (const [title, corefile, message] of [
    ["that does not parse", () => "rubbish {\n", /Corefile:1:\d+: error: /],
    ["with an unknown directive", () => ".:1053 {\n  forwrad . 127.0.0.1\n}\n", /did you mean 'forward'/],
    [
      "of a plugin that cannot start",
      () => ".:1053 {\n  kubernetes a.example {\n    manifests nowhere\n  }\n}\n",
      /nowhere/,
    ],
  ] as const) {
    test(`a Corefile ${title} changes nothing and is named in the log`, async () => {
      await using server = await Portolan.start(hosts("192.0.2.1"));
      const log = await server.reload(corefile);
      await server.waitForLog(message);
      assert.match(log, /^\[INFO\] SIGUSR1: Reloading\n\[INFO\] Reloading\n/);
      assert.match(log, /\[ERROR\] Restart failed: /);
      const [, reason = ""] = await server.waitForLog(
        /^\[ERROR\] SIGUSR1: starting with listener file descriptors: (.+)$/m,
      );
      assert.ok(server.log.includes(`[ERROR] Restart failed: ${reason}\n`), reason);
      assert.equal(await answer(server), "NOERROR 192.0.2.1");
      assert.equal((await server.page("health", "/health")).status, 200);
      assert.equal((await server.page("metrics", "/metrics")).status, 200);
      await server.reload(hosts("192.0.2.3"));
      assert.equal(await answer(server), "NOERROR 192.0.2.3");
    });
  }

  test("a port that is taken: the old one serves on, and so does what shares the new Corefile with it", async (t) => {
    await using server = await Portolan.start(hosts("192.0.2.1"));
    const taken = createServer().listen(0, "127.0.0.1");
    t.after(() => taken.close());
    await once(taken, "listening");
    const address = taken.address();
    assert.ok(address !== null && typeof address === "object");
    const log = await server.reload(
      (port) => `${hosts("192.0.2.2")(port)}\nb.example:${address.port} {\n  bind 127.0.0.1\n}\n`,
    );
    assert.match(log, new RegExp(`Restart failed: .*127\\.0\\.0\\.1:${address.port}.*in use`));
    assert.equal(await answer(server), "NOERROR 192.0.2.1");
    assert.equal((await server.page("health", "/health")).status, 200);
  });

  test("a Corefile that is gone: the old one serves on", async () => {
    await using server = await Portolan.start(hosts("192.0.2.1"));
    rmSync(join(server.folder, "Corefile"));
    assert.match(await server.reload(), /\[ERROR\] Restart failed: .*Corefile.*no such file/);
    assert.equal(await answer(server), "NOERROR 192.0.2.1");
  });

  test("another port: the new one answers, and the old one no more", async () => {
    await using server = await Portolan.start(hosts("192.0.2.1"));
    const moved = await freePort();
    await server.reload((port) => hosts("192.0.2.2")((name) => (name === "dns" ? moved : port(name))));
    assert.equal(await answer({ address: server.address, port: moved }), "NOERROR 192.0.2.2");
    assert.equal(await exchangeUdp(server, queryOctets("name.example"), 300), undefined);
    // And back again, to an address that was closed before.
    await server.reload(hosts("192.0.2.3"));
    assert.equal(await answer(server), "NOERROR 192.0.2.3");
  });

  test("from standard input, which can be read but once: the same again", async () => {
    const port = await freePort();
    await using program = portolan(["-conf", "stdin"], {
      input: hosts("192.0.2.1")(() => port).replace(/^.*(health|prometheus).*$/gm, ""),
    });
    await program.waitForOutput(/node\d/);
    program.kill("SIGUSR1");
    await program.waitForOutput(/Reloading complete/);
    assert.equal(await answer({ address: "127.0.0.1", port }), "NOERROR 192.0.2.1");
  });

  test("many in a row end in the last one", async () => {
    await using server = await Portolan.start(hosts("192.0.2.1"));
    server.writeCorefile(hosts("192.0.2.9")(server.portOf));
    for (let n = 0; n < 20; n++) server.program.kill("SIGUSR1");
    await server.reload();
    assert.equal(await answer(server), "NOERROR 192.0.2.9");
    assert.deepEqual(await server.stop(), { code: 0, signal: null });
  });
});
