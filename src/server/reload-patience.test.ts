/** A reload that does not come to its end: what was in force goes on. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { memoryHost } from "../corefile/host.ts";
import { A, decodeMessage, encodeMessage, makeQuery, Name, RecordType } from "../dns/index.ts";
import { MemoryLog } from "../lib/logging/log.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { required } from "../plugin/config/arguments.ts";
import { directive } from "../plugin/config/schema.ts";
import { text } from "../plugin/config/values.ts";
import { definePlugin } from "../plugin/contract/define-plugin.ts";
import { systemRandom, thisMachine } from "./configuration/machine.ts";
import { PluginRegistry } from "./configuration/plugin-registry.ts";
import { ReloadError, Server } from "./server.ts";

/** Plugins whose hook of that name ends when the test says so. */
function scene(hook: "start" | "warmUp") {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const answer = definePlugin({
    name: "answer",
    summary: "for this test",
    config: directive({ args: { address: required(text()) } }),
    create: ({ address }) => ({
      handle: (query) => query.reply({ answer: [A.create(query.name, 60, { address })] }),
    }),
  });
  const waits = definePlugin({
    name: "waits",
    summary: "for this test",
    config: directive({}),
    create: () => ({
      [hook]: () => {
        begun.resolve();
        return gate.promise;
      },
      stop: () => stopped.resolve(),
    }),
  });
  const plugins: Readonly<Record<string, unknown>> = { answer, waits };
  const source = { text: ".:0 {\n answer 192.0.2.1\n}\n" };
  const clock = new FakeClock();
  const log = new MemoryLog();
  const server = new Server({
    source: () => ({ text: source.text, file: "Corefile" }),
    registry: new PluginRegistry(
      Object.keys(plugins).map((name) => ({ name, module: name })),
      { load: async ({ name }) => plugins[name] },
    ),
    host: memoryHost(),
    machine: thisMachine({}),
    clock,
    random: systemRandom(),
    log,
    metrics: new MetricsRegistry({ processMetrics: false }),
    version: "0.0.0",
  });
  return { begun: begun.promise, gate, stopped: stopped.promise, source, clock, log, server };
}

async function addressFrom(server: Server): Promise<string> {
  const socket = createSocket("udp4");
  try {
    const query = encodeMessage(makeQuery({ name: Name.parse("a."), type: RecordType.A }, { id: 7 }));
    socket.send(query, server.addresses[0]?.port ?? assert.fail(), "127.0.0.1");
    const [reply] = await once(socket, "message");
    const [record] = decodeMessage(reply).answer;
    return record !== undefined && A.is(record) ? record.data.address : "none";
  } finally {
    socket.close();
  }
}

for (const hook of ["start", "warmUp"] as const)
  test(`a reload whose ${hook} does not end within a minute is given up, and the next one is tried`, async () => {
    const { begun, gate, stopped, source, clock, log, server } = scene(hook);
    await server.start();
    try {
      source.text = ".:0 {\n answer 192.0.2.2\n waits\n}\n";
      let isOver = false;
      const reload = server.reload().finally(() => {
        isOver = true;
      });
      await begun;
      await new Promise(setImmediate);
      clock.advance(59_000);
      await new Promise(setImmediate);
      assert.equal(isOver, false);
      const refused = assert.rejects(reload, ReloadError);
      clock.advance(2_000);
      await refused;
      assert.match(log.lines.join("\n"), /Restart failed: the plugins did not start within a minute/);
      assert.equal(await addressFrom(server), "192.0.2.1");
      source.text = ".:0 {\n answer 192.0.2.3\n}\n";
      await server.reload();
      assert.equal(await addressFrom(server), "192.0.2.3");
      // What was begun is stopped once it has come to its end.
      gate.resolve();
      await stopped;
      assert.equal(await addressFrom(server), "192.0.2.3");
    } finally {
      gate.resolve();
      await server.stop();
    }
  });
