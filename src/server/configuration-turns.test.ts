import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryHost } from "../corefile/host.ts";
import { MemoryLog } from "../lib/logging/log.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { SystemClock } from "../lib/time/clock.ts";
import { directive } from "../plugin/config/schema.ts";
import { definePlugin } from "../plugin/contract/define-plugin.ts";
import { systemRandom, thisMachine } from "./configuration/machine.ts";
import { PluginRegistry } from "./configuration/plugin-registry.ts";
import { Server } from "./server.ts";

/** Of a machine on which the smallest thing takes a while. */
class SlowClock extends SystemClock {
  #lost = 0;

  override now(): number {
    this.#lost += 10;
    return super.now() + this.#lost;
  }
}

/** Numbers the turns of the event loop in which something happened. */
class Turns {
  #turn = 0;
  readonly noted: number[] = [];

  note(): void {
    const turn = this.#turn;
    this.noted.push(turn);
    setImmediate(() => {
      if (this.#turn === turn) this.#turn++;
    });
  }
}

test("a configuration takes many short turns of the event loop, at the start and in a reload", async () => {
  const turns = new Turns();
  const noting = definePlugin({
    name: "noting",
    summary: "for this test",
    config: directive({}),
    create: () => {
      turns.note();
      return {
        inherit: () => turns.note(),
        start: () => turns.note(),
      };
    },
  });
  const server = new Server({
    source: () => ({
      text: ["a", "b", "c"].map((zone) => `${zone}.example:0 {\n bind 127.0.0.1\n noting\n}\n`).join(""),
      file: "Corefile",
    }),
    registry: new PluginRegistry(
      [
        { name: "bind", module: "../../plugins/bind/index.ts" },
        { name: "noting", module: "noting" },
      ],
      {
        load: async ({ name }) =>
          name === "noting" ? noting : (await import("../plugins/bind/index.ts")).default,
      },
    ),
    host: memoryHost(),
    machine: thisMachine({}),
    clock: new SlowClock(),
    random: systemRandom(),
    log: new MemoryLog(),
    metrics: new MetricsRegistry(),
    version: "0.0.0",
  });
  await server.start();
  try {
    assert.equal(turns.noted.length, 6);
    assert.equal(new Set(turns.noted).size, 6, `${turns.noted}`);
    turns.noted.length = 0;
    await server.reload();
    assert.equal(turns.noted.length, 9);
    assert.equal(new Set(turns.noted).size, 9, `${turns.noted}`);
  } finally {
    await server.stop();
  }
});
