import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { NomadAgent } from "../../../test/support/nomad-agent.ts";
import { untilTime } from "../../../test/support/until-true.ts";
import { Rcode } from "../../dns/index.ts";
import type { Machine } from "../../plugin/contract/site.ts";
import { ConfigRefused, PluginTest, recordText } from "../../plugin/testing.ts";
import nomad from "./index.ts";

let agent: NomadAgent;
let running: PluginTest<unknown>[] = [];

beforeEach(async () => {
  agent = await NomadAgent.start();
});
afterEach(async () => {
  for (const each of running) await each.stop();
  running = [];
  await agent[Symbol.asyncDispose]();
});

const WEB = { service: "web", address: "192.0.2.1", port: 8080 };

function machine(environment: Record<string, string>): Machine {
  return {
    hostname: "node",
    environment,
    parallelism: 1,
    descriptors: 1024,
    interfaceAddresses: () => undefined,
    addresses: () => [],
  };
}

async function serve(options = `address ${agent.url}`, environment: Record<string, string> = {}) {
  const test = PluginTest.of(nomad, `nomad {\n${options}\n}`, { site: { machine: machine(environment) } });
  running.push(test);
  await test.start();
  return test;
}

/** Advances time until the condition holds. */
const soon = (test: PluginTest<unknown>, isSo: () => boolean | Promise<boolean>): Promise<void> =>
  untilTime(test, 100, isSo);

async function answersWith(
  test: PluginTest<unknown>,
  name: string,
  expected: readonly string[],
): Promise<void> {
  await soon(test, async () => {
    const outcome = await test.outcome({ name });
    return outcome.kind === "reply" && outcome.answer.map(recordText).join() === expected.join();
  });
}

test("answers with addresses and ports of services, by namespace", async () => {
  agent.register(
    WEB,
    { ...WEB, address: "192.0.2.2", port: 8081 },
    { ...WEB, address: "2001:db8::1", port: 8080 },
    { service: "web", namespace: "team-a", address: "192.0.2.9", port: 80 },
  );
  const server = await serve();
  const name = "web.default.service.nomad.";
  for (const [asked, type, answer] of [
    [name, "A", [`${name} 30 IN A 192.0.2.1`, `${name} 30 IN A 192.0.2.2`]],
    [
      "WEB.Default.service.nomad.",
      "A",
      [`WEB.Default.service.nomad. 30 IN A 192.0.2.1`, `WEB.Default.service.nomad. 30 IN A 192.0.2.2`],
    ],
    [name, "AAAA", [`${name} 30 IN AAAA 2001:db8::1`]],
    [name, "SRV", [`${name} 30 IN SRV 10 10 8080 ${name}`, `${name} 30 IN SRV 10 10 8081 ${name}`]],
    ["web.team-a.service.nomad.", "A", ["web.team-a.service.nomad. 30 IN A 192.0.2.9"]],
    [name, "TXT", []],
    ["web.team-a.service.nomad.", "AAAA", []],
  ] as const) {
    const reply = await server.ask({ name: asked, type });
    assert.equal(reply.rcode, Rcode.NOERROR);
    assert.ok((reply.reply.flags & 0x0400) !== 0, "AA");
    assert.deepEqual(reply.answer.toSorted(), [...answer].toSorted(), `${asked} ${type}`);
    if (answer.length === 0)
      assert.match(
        reply.authority[0] ?? "",
        /^service\.nomad\. 30 IN SOA ns1\.service\.nomad\. hostmaster\.service\.nomad\. \d+ 3600 600 86400 30$/,
      );
    if (type === "SRV") assert.equal(reply.additional.length, 3);
  }
  const missing = await server.ask({ name: "none.default.service.nomad." });
  assert.equal(missing.rcode, Rcode.NXDOMAIN);
  assert.deepEqual(missing.answer, []);
  assert.match(missing.authority[0] ?? "", /IN SOA/);
});

test("follows changes by blocking queries, and invalidates the caches", async () => {
  agent.register(WEB);
  const forgotten: string[] = [];
  const instance = { forget: (names: readonly unknown[]) => void forgotten.push(...names.map(String)) };
  const server = PluginTest.of(nomad, `nomad nomad.test {\naddress ${agent.url}\nttl 5\n}`, {
    neighbours: [{ name: "cache", instance }],
  });
  running.push(server);
  await server.start();
  await soon(server, () => agent.waiting === 1);
  const { length } = agent.requests;
  assert.match(agent.requests.at(-1) ?? "", /^\/v1\/services\?namespace=\*&index=11&wait=60s$/);
  forgotten.length = 0;
  // An agent answers after at most a minute, and counts as dead some time later.
  await server.clock.settle(75_000);
  assert.equal(agent.requests.length, length, "nothing is asked while nothing changes");
  agent.register(WEB, { ...WEB, address: "192.0.2.2" });
  const name = "web.default.nomad.test.";
  await answersWith(server, name, [`${name} 5 IN A 192.0.2.1`, `${name} 5 IN A 192.0.2.2`]);
  assert.deepEqual(forgotten, ["nomad.test."]);
  agent.register();
  await soon(server, async () => (await server.ask({ name })).rcode === Rcode.NXDOMAIN);
});

test("a blocking query that ends without a change lists nothing, and refreshes the age", async () => {
  agent.register(WEB);
  const server = await serve();
  await soon(server, () => agent.waiting === 1);
  await server.clock.settle(60_000);
  const listings = (): number => agent.requests.filter((path) => path.startsWith("/v1/service/")).length;
  const before = listings();
  agent.wake();
  await soon(server, () => agent.waiting === 1);
  assert.equal(listings(), before);
  assert.match(String(server.instances[0]?.describeState?.()), /3 records, read 0s ago$/);
});

test("tries the next agent when one is unreachable, and continues with it", async () => {
  await using second = await NomadAgent.start();
  agent.register();
  agent.register(WEB);
  second.register({ ...WEB, address: "192.0.2.2" });
  const server = await serve(`address http://127.0.0.1:1 ${second.url}\naddress ${agent.url}`);
  const name = "web.default.service.nomad.";
  await answersWith(server, name, [`${name} 30 IN A 192.0.2.2`]);
  second.failure = 500;
  second.register();
  await answersWith(server, name, [`${name} 30 IN A 192.0.2.1`]);
});

test("keeps its services while all agents are unreachable, reports their age, and logs the fault once", async () => {
  agent.register(WEB);
  const server = await serve();
  await soon(server, () => agent.waiting === 1);
  agent.failure = 500;
  agent.wake();
  await soon(server, () => server.log.lines.some((line) => line.includes("Failed to update zone")));
  await soon(server, () => agent.requests.length > 8);
  const name = "web.default.service.nomad.";
  assert.deepEqual((await server.ask({ name })).answer, [`${name} 30 IN A 192.0.2.1`]);
  assert.equal(server.log.lines.filter((line) => line.includes("Failed to update")).length, 1);
  assert.match(
    String(server.instances[0]?.describeState?.()),
    /read \w+ ago, cannot be read now: GET .*: 500: No cluster leader$/,
  );
  assert.equal(server.instances[0]?.ready?.(), true);
  assert.match(
    (await server.metrics.expose()).body,
    /^portolan_zone_age_seconds\{zone="service\.nomad\."\} [1-9]/m,
  );
  agent.failure = 0;
  await soon(server, () => server.log.lines.some((line) => line.includes("is available again")));
});

test("before the first listing nothing is ready, and queries fail", async () => {
  agent.failure = 500;
  agent.register(WEB);
  const server = PluginTest.of(nomad, `nomad {\naddress ${agent.url}\n}`);
  running.push(server);
  await server.instances[0]?.start?.();
  const name = "web.default.service.nomad.";
  const outcome = await server.outcome({ name });
  assert.ok(outcome.kind === "failed" && outcome.rcode === Rcode.SERVFAIL);
  assert.equal(server.instances[0]?.ready?.(), false);
  agent.failure = 0;
  await soon(server, () => server.instances[0]?.ready?.() === true);
  const { body } = await server.metrics.expose();
  assert.match(body, /^coredns_nomad_failed_requests_total\{server=".+",namespace=""\} 1$/m);
  await server.ask({ name });
  assert.match(
    (await server.metrics.expose()).body,
    /^coredns_nomad_success_requests_total\{server=".+",namespace="default"\} 1$/m,
  );
});

test("takes the token from the Corefile, the environment, or a file that may change", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-nomad-"));
  try {
    const file = join(folder, "token");
    agent.token = "s1";
    agent.register(WEB);
    for (const [options, environment] of [
      ["token s1", {}],
      ["", { NOMAD_TOKEN: "s1" }],
    ] as const) {
      const server = await serve(`address ${agent.url}\n${options}`, environment);
      assert.equal(server.instances[0]?.ready?.(), true);
    }
    writeFileSync(file, "wrong\n");
    const server = PluginTest.of(nomad, `nomad {\naddress ${agent.url}\ntoken_file ${file}\n}`);
    running.push(server);
    await server.instances[0]?.start?.();
    await soon(server, () => server.log.lines.some((line) => line.includes("403: Permission denied")));
    writeFileSync(file, "s1\n");
    await soon(server, () => server.instances[0]?.ready?.() === true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("names the permission that a token lacks", async () => {
  agent.token = "mine";
  const test = await serve(`address ${agent.url}\ntoken mine`);
  agent.token = "other";
  agent.register(WEB);
  await soon(test, () => test.log.lines.some((line) => line.includes("Failed to update zone")));
  assert.match(
    test.log.lines.join("\n"),
    /GET http:\S+\/v1\/services: 403: Permission denied: the token needs the capability read-job in all namespaces that it should see/,
  );
});

test("passes the filter to Nomad, and finds the agent through NOMAD_ADDR", async () => {
  agent.register({ ...WEB, tags: ["blue"] }, { ...WEB, address: "192.0.2.2", tags: ["green"] });
  const server = await serve('filter "\\"green\\" in Tags"', { NOMAD_ADDR: agent.url });
  const name = "web.default.service.nomad.";
  assert.deepEqual((await server.ask({ name })).answer, [`${name} 30 IN A 192.0.2.2`]);
});

test("a malformed registration affects only itself, and is logged once", async () => {
  agent.register({ ...WEB, address: "not-an-address" }, WEB, { ...WEB, service: "x.y" });
  const server = await serve();
  const name = "web.default.service.nomad.";
  assert.deepEqual((await server.ask({ name })).answer, [`${name} 30 IN A 192.0.2.1`]);
  agent.register({ ...WEB, address: "not-an-address" }, WEB, { ...WEB, address: "192.0.2.2" });
  await answersWith(server, name, [`${name} 30 IN A 192.0.2.1`, `${name} 30 IN A 192.0.2.2`]);
  const lines = server.log.lines.filter((line) => line.includes("skipped"));
  assert.equal(lines.filter((line) => line.includes("not-an-address")).length, 1);
  assert.equal(lines.length, 2);
});

for (const [text, message] of [
  ["nomad a b", /unexpected line ending/],
  ["nomad {\naddress\n}", /unexpected line ending/],
  ["nomad {\naddress ftp://x\n}", /'ftp:\/\/x' is not the URL of a Nomad agent/],
  ["nomad {\nttl 3601\n}", /'3601' is not a whole number from 0 to 3600/],
  ["nomad {\ntoken a\ntoken_file b\n}", /'token' and 'token_file' cannot be used together/],
  ["nomad {\nfoo\n}", /unknown property 'foo'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(nomad, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("signs in with the name and password of an address, and logs neither", async () => {
  agent.register(WEB);
  const server = await serve(`address ${agent.url.replace("//", "//us%40er:s3cret@")}`);
  await answersWith(server, "web.default.service.nomad.", ["web.default.service.nomad. 30 IN A 192.0.2.1"]);
  assert.equal(agent.authorization, `Basic ${Buffer.from("us@er:s3cret").toString("base64")}`);
  agent.failure = 500;
  agent.wake();
  await soon(server, () => server.log.lines.some((line) => line.includes("Failed to update zone")));
  const shown = [...server.log.lines, ...(server.instances[0]?.describeState?.() ?? [])].join("\n");
  assert.match(shown, /Nomad at http:\/\/127\.0\.0\.1:\d+\)/);
  assert.doesNotMatch(shown, /s3cret|us%40er|us@er/);
});
