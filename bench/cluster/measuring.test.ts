import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { onlyAddress } from "./answer-watch.ts";
import { THOUSAND_SERVICES } from "./cluster-shape.ts";
import { startApi } from "./live-server.ts";
import { latencyOf } from "./measure-scenario.ts";
import { monotonicMilliseconds } from "./monotonic-time.ts";
import { forgetPeak, parseMemory, processMemory } from "./process-memory.ts";

test("an event counts until the first answer with its address, and is missed without such an answer", () => {
  const { latency, events, missed } = latencyOf(
    [
      [1, 1000],
      [2, 1010],
      [258, 1020],
    ],
    [
      [0x0a00_0007, 900],
      [0x0a00_0001, 1001],
      [0x0a00_0102, 1023],
    ],
  );
  assert.deepEqual([events, missed], [3, 1]);
  assert.deepEqual([latency?.p50, latency?.max], [1000, 3000]);
});

test("an answer is one address and nothing else", () => {
  const reply = Buffer.from(
    "00008580000100010000000003777777056c6f63616c0000010001c00c0001000100000005000400000000",
    "hex",
  );
  reply.set([10, 0, 1, 2], reply.length - 4);
  assert.equal(onlyAddress(reply, reply.length), 0x0a00_0102);
  reply.set([192, 0, 2, 1], reply.length - 4);
  assert.equal(onlyAddress(reply, reply.length), 0xc000_0201);
  reply[7] = 2;
  assert.equal(onlyAddress(reply, reply.length), -1);
  reply[7] = 1;
  reply[11] = 1;
  assert.equal(onlyAddress(reply, reply.length), -1);
});

test("memory is three lines of status, in megabytes", () => {
  const status = "Name:\tnode\nVmHWM:\t  200000 kB\nVmRSS:\t  100000 kB\nRssAnon:\t   50000 kB\n";
  assert.deepEqual(parseMemory(status), {
    resident: 102.4,
    own: 51.2,
    peak: 204.8,
  });
  assert.throws(() => parseMemory("Name:\tgone\nState:\tZ (zombie)\n"), RangeError);
});

test("a peak can be forgotten", { skip: process.platform !== "linux" }, async () => {
  // It says so when it has let go of 60 MB.
  const script = `
    let octets = Buffer.alloc(60e6, 1);
    setInterval(() => {
      octets = undefined;
      gc();
      if (process.resourceUsage().maxRSS * 1024 - process.memoryUsage.rss() > 50e6) console.log("now");
    }, 10);`;
  const child = spawn(process.execPath, ["--expose-gc", "-e", script], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {},
  });
  try {
    await once(child.stdout, "data");
    const { pid } = child;
    assert.ok(pid !== undefined);
    const before = processMemory(pid);
    assert.ok(before.peak > before.resident + 40);
    forgetPeak(pid);
    assert.ok(processMemory(pid).peak < before.peak - 40);
  } finally {
    child.kill();
    await once(child, "close");
  }
});

test("an API that ends before its lists were asked for fails only who waits for them", async () => {
  const live = await startApi(THOUSAND_SERVICES, true);
  const unawaited = live.api.listed(1);
  await live[Symbol.asyncDispose]();
  // Rejections that are still unhandled fail the test.
  await setImmediate();
  await assert.rejects(unawaited, /the API of the benchmark ended/);
});

test("time goes on", () => {
  const first = monotonicMilliseconds();
  assert.ok(monotonicMilliseconds() >= first);
});
