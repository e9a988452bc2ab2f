import assert from "node:assert/strict";
import { test } from "node:test";
import { DROPPED, type Next } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import shed from "./index.ts";

const METRIC = /^coredns_shed_dropped_total\{server="dns:\/\/:53",reason="query"\} (\d+)$/m;

async function count(running: PluginTest<unknown>): Promise<string | undefined> {
  return METRIC.exec((await running.metrics.expose()).body)?.[1];
}

/** A listener drops a query while it waits. */
const abandoned: Next = async (query) => {
  query.abandon();
  return DROPPED;
};

test("counts queries over UDP that their listener dropped, from 0 on", async () => {
  const running = PluginTest.of(shed, "shed");
  assert.equal(await count(running), undefined);
  await running.ask({ name: "a.test.", next: answering({}) });
  assert.equal(await count(running), "0");
  assert.equal(await running.outcome({ name: "a.test.", next: abandoned }), DROPPED);
  await running.outcome({ name: "a.test.", next: abandoned });
  await running.outcome({ name: "a.test.", transport: "tcp", next: abandoned });
  await running.outcome({ name: "a.test.", next: () => DROPPED });
  assert.equal(await count(running), "2");
});

test("an immediate answer makes no promise", () => {
  const running = PluginTest.of(shed, "shed");
  assert.ok(!(running.outcome({ name: "a.test.", next: answering({}) }) instanceof Promise));
});

test("an empty block is accepted", () => {
  PluginTest.of(shed, "shed {\n}");
});

for (const [text, keys, message] of [
  ["shed x", ".:53", /after 'x'/],
  ["shed {\n foo\n}", ".:53", /shed takes no options/],
  ["shed\nshed", ".:53", /this plugin can only be used once per Server Block/],
  [
    "shed",
    "tls://.:853",
    /only plain DNS server blocks are supported; "tls:\/\/\.:853" uses transport "tls"/,
  ],
  ["shed", ".:53 grpc://.:443", /"grpc:\/\/\.:443" uses transport "grpc"/],
] as const) {
  test(`refuses ${JSON.stringify(text)} for ${keys}`, () => {
    assert.throws(
      () => PluginTest.of(shed, text, { keys }),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
