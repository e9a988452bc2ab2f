/** The settings that the console changes while a server runs: the log level, and the traced clients. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MachineView, SettingsView } from "../../src/console/api-types.ts";
import { FakeCollector } from "../support/collector.ts";
import { ask } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const TOKEN = "a token that is hard to guess";

interface Answer {
  readonly status: number;
  readonly body: SettingsView & { readonly error?: string };
}

async function send(server: Portolan, path: string, body?: object, token = TOKEN): Promise<Answer> {
  const response = await fetch(`http://127.0.0.1:${server.portOf("console")}/api/v1/settings${path}`, {
    ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
  });
  return { status: response.status, body: (await response.json()) as Answer["body"] };
}

function start(stack: AsyncDisposableStack, { lines = "", sockets = 1 } = {}): Promise<Portolan> {
  return Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    multisocket ${sockets}
    console 127.0.0.1:${port("console")} {
        token_file token
    }
    ${lines}
    whoami
}
`,
    { files: { token: TOKEN } },
  ).then((server) => stack.use(server));
}

test("the level of the log, on every thread, until the next reload", async () => {
  await using stack = new AsyncDisposableStack();
  const server = await start(stack, { sockets: 2 });
  assert.deepEqual((await send(server, "")).body, {
    level: "info",
    levels: ["debug", "info", "warning", "error"],
    tracers: 0,
    traced: null,
  });
  assert.equal((await send(server, "/level", { level: "warning" })).body.level, "warning");
  await server.waitForLog(
    /plugin\/console: the log has level warning until the next reload, requested by 127\.0\.0\.1\n/,
  );
  const before = server.log.length;
  assert.equal((await send(server, "/level", { level: "warning" })).status, 200);
  // Requested changes are logged whatever the level.
  await server.waitForLog(/the log has level warning/, before);
  await server.reload();
  assert.equal((await send(server, "")).body.level, "info");
});

test("queries that other threads have finished are counted on after a reload", async () => {
  await using stack = new AsyncDisposableStack();
  const server = await start(stack, { sockets: 2 });
  const finished = async (): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${server.portOf("console")}/api/v1/machine`);
    return ((await response.json()) as MachineView).finished;
  };
  // Each from a port of its own, so that both threads get some.
  const asked = 64;
  for (let count = 0; count < asked; count++) await ask(server, "x.example.");
  await untilTrue(async () => (await finished()) >= asked);
  const before = await finished();
  await server.reload();
  await untilTrue(async () => (await finished()) >= before);
  await ask(server, "y.example.");
  await untilTrue(async () => (await finished()) > before);
});

test("all queries of a client are traced for a while, on every thread", async () => {
  await using stack = new AsyncDisposableStack();
  const collector = stack.use(await FakeCollector.start());
  // By itself nothing is traced.
  const lines = `trace otlp ${collector.url} {\n client 192.0.2.0/24\n }`;
  const server = await start(stack, { lines, sockets: 2 });
  await ask(server, "before.example.");
  const { status, body } = await send(server, "/trace", { client: "127.0.0.0/8", minutes: 1 });
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(body.tracers, 1);
  assert.equal(body.traced?.client, "127.0.0.0/8");
  const remaining = (body.traced?.until ?? 0) - Date.now();
  assert.ok(remaining > 0 && remaining <= 60_000, `${remaining}`);
  await server.waitForLog(
    /all queries of 127\.0\.0\.0\/8 are traced for 1 minute, requested by 127\.0\.0\.1/,
  );
  // Both threads answer sooner or later.
  for (let n = 0; n < 30; n++) await ask(server, `n${n}.example.`);
  const traced = () => new Set(collector.spans.map(({ traceId }) => traceId)).size;
  await collector.until(() => traced() >= 30);
  assert.ok(!JSON.stringify(collector.spans).includes("before.example"));

  assert.equal((await send(server, "/trace", { client: "" })).body.traced, null);
  const count = traced();
  for (let n = 0; n < 5; n++) await ask(server, `after${n}.example.`);
  await send(server, "/trace", { client: "127.0.0.1" });
  await ask(server, "again.example.");
  await collector.until(() => JSON.stringify(collector.spans).includes("again.example"));
  assert.equal(traced(), count + 1);
});

test("says what is wrong, and lets no client in without the token", async () => {
  await using stack = new AsyncDisposableStack();
  const server = await start(stack);
  for (const [path, body, status, reason] of [
    ["/level", { level: "loud" }, 400, /"level" is one of debug, info, warning, error/],
    ["/level", {}, 400, /"level" is one of/],
    ["/level", { level: "debug", more: 1 }, 400, /unknown member "more"/],
    ["/trace", { client: "10.0" }, 400, /10\.0 is not an IP address or prefix/],
    ["/trace", { client: "10.0.0.1", minutes: 0 }, 400, /"minutes" is a whole number from 1 to 1440/],
    ["/trace", {}, 400, /"client" is missing/],
    ["/trace", { client: "10.0.0.1" }, 409, /write 'trace' into a server block/],
  ] as const) {
    const answer = await send(server, path, body);
    assert.equal(answer.status, status);
    assert.match(answer.body.error ?? "", reason);
  }
  for (const path of ["/level", "/trace"])
    assert.equal((await send(server, path, { level: "debug" }, "wrong")).status, 401);
});
