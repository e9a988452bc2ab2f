import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RecordType } from "../../dns/index.ts";
import { Rcode } from "../../dns/numbers.ts";
import type { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import type { Handler } from "../../plugin/chain/handler.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import { definePlugin, type PluginDefinition, SetupError } from "../../plugin/contract/define-plugin.ts";
import type { PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import { DROPPED, Failure } from "../../plugin/query/outcome.ts";
import { ZoneList } from "../../plugin/query/zones.ts";
import { ConfigRefused, PluginTest, until } from "../../plugin/testing.ts";
import { buildChain, PluginPanic } from "../serving/chain.ts";
import { isolated } from "./isolation.ts";

const QUESTION = { name: "a.example." };

function define(create: PluginDefinition<object>["create"]): PluginDefinition<object> {
  return definePlugin({
    name: "faulty",
    summary: "Is tested.",
    config: bareDirective(),
    ...(create !== undefined && { create }),
  });
}

function testOf(instance: PluginInstance, budget = 1_000): PluginTest<object> {
  return PluginTest.of(
    isolated(
      define(() => instance),
      budget,
    ),
    "faulty",
  );
}

async function panicsOf({ metrics }: { readonly metrics: MetricsRegistry }): Promise<number> {
  const { body } = await metrics.expose();
  return Number(/^portolan_plugin_panics_total\{plugin="faulty"\} (\d+)$/m.exec(body)?.[1] ?? 0);
}

/** What an author who does without types may return. */
function untyped(value: unknown): ReturnType<Handler> {
  return value as ReturnType<Handler>;
}

/** Throws values that the linters of this project would refuse. */
function throwing(value: unknown): never {
  const nothing = (function* (): Generator<never, never> {
    for (;;) yield untyped(undefined) as never;
  })();
  return nothing.throw(value).value;
}

describe("what an isolated plugin makes of a query", () => {
  const fake = { kind: "reply", rcode: 0, encoded: {} };
  const faults: readonly [what: string, handle: Handler, message: RegExp][] = [
    [
      "throws",
      () => {
        throw new Error("thrown");
      },
      /thrown/,
    ],
    ["throws what is no error", () => throwing("a word"), /a word/],
    ["rejects", () => Promise.reject(new Error("rejected")), /rejected/],
    ["rejects with nothing", async () => throwing(undefined), /undefined/],
    ["nothing", () => untyped(undefined), /no outcome/],
    ["null", () => untyped(null), /no outcome/],
    ["a word", () => untyped("rubbish"), /no outcome/],
    ["an object that looks like a reply", () => untyped(fake), /no outcome/],
    ["a promise of nothing", async () => untyped(undefined), /no outcome/],
    ["a promise of rubbish", async () => untyped({ rcode: 0 }), /no outcome/],
    ["an invalid rcode", (query) => query.reply({ rcode: 99_999 }), /faulty reply/],
    ["a failure without rcode", () => new Failure(Number.NaN), /no outcome/],
    [
      "invalid records",
      (query) => query.reply({ answer: [untyped("a. 5 IN A 192.0.2.1")] as never }),
      /handler returned records that cannot be written: /,
    ],
    ["the reply to another query", () => testOf({}).query(QUESTION).reply({}), /another query/],
  ];
  for (const [what, handle, message] of faults) {
    for (const budget of [0, 1_000]) {
      it(`${what}: SERVFAIL that names it, and is counted (budget ${budget})`, async () => {
        const running = testOf({ handle }, budget);
        const named: string[] = [];
        const handlers = running.instances.flatMap((instance) =>
          instance.handle === undefined ? [] : [{ name: "faulty", handle: instance.handle }],
        );
        const chain = buildChain(handlers, (plugin, error) => named.push(`${plugin}: ${error.message}`));
        const outcome = await chain?.(running.query(QUESTION));
        assert.ok(outcome?.kind === "failed" && outcome.error instanceof PluginPanic);
        assert.equal(outcome.rcode, Rcode.SERVFAIL);
        assert.equal(outcome.plugin, "faulty");
        assert.equal(named.length, 1);
        assert.match(named[0] ?? "", message);
        assert.equal(await panicsOf(running), 1);
      });
    }
  }

  for (const [what, handle, kind] of [
    ["a drop", () => DROPPED, "dropped"],
    ["a failure", () => new Failure(Rcode.REFUSED), "failed"],
    [
      "two replies, of which it returns one",
      (query) => {
        query.reply({});
        return query.reply({});
      },
      "reply",
    ],
    [
      "the second of two answers from behind",
      (query, next) => {
        void next(query);
        return next(query);
      },
      "reply",
    ],
    ["the reply to a derived query", (query) => query.derive({ type: RecordType.AAAA }).reply({}), "reply"],
  ] as const satisfies readonly (readonly [string, Handler, string])[]) {
    it(`${what} is as good as from a built-in plugin`, async () => {
      const running = testOf({ handle });
      const outcome = await running.outcome({ ...QUESTION, next: (query) => query.reply({}) });
      assert.equal(outcome.kind, kind);
      assert.equal(await panicsOf(running), 0);
    });
  }

  it("a promise that is late and then rejects is ignored", async () => {
    const { promise, reject } = Promise.withResolvers<never>();
    const running = testOf({ handle: () => promise });
    const asked = running.outcome(QUESTION);
    running.clock.advance(1_000);
    assert.equal((await asked).kind, "failed");
    reject(new Error("late"));
    await until(() => true);
    assert.equal(await panicsOf(running), 0);
  });
});

describe("the hooks of an isolated plugin", () => {
  const failing = (): never => {
    throw new Error("no\nluck");
  };

  for (const [what, create, message] of [
    ["throws", failing, "plugin/faulty: no luck"],
    ["returns a number", () => 7, "plugin/faulty: create returned no instance"],
    ["returns a promise", async () => ({}), "plugin/faulty: create returned a promise"],
    ["has an invalid handle", () => ({ handle: 7 }), "plugin/faulty: its handle is not a function"],
  ] as const) {
    it(`create ${what}: the configuration is refused`, () => {
      assert.throws(
        () => PluginTest.of(isolated(define(create as never), 0), "faulty"),
        (error) => error instanceof SetupError && error.message.startsWith(message),
      );
    });
  }

  it("start that fails or hangs refuses the start, with the plugin's name", async () => {
    await assert.rejects(testOf({ start: failing }).start(), {
      name: "SetupError",
      message: "plugin/faulty: no luck",
    });
    const running = testOf({ start: () => new Promise(() => undefined) });
    const started = running.start();
    running.clock.advance(60_000);
    await assert.rejects(started, { message: "plugin/faulty: start did not finish within 1m0s" });
  });

  it("stop that hangs holds the server for five seconds", async () => {
    const running = testOf({ stop: () => new Promise(() => undefined) });
    const stopped = running.stop();
    running.clock.advance(5_000);
    await assert.rejects(stopped, { message: "stop did not finish within 5s" });
  });

  it("drain that fails does not keep the others from draining", async () => {
    const running = testOf({ drain: async () => failing() });
    await running.instances[0]?.drain?.();
    assert.deepEqual(running.log.lines, ["[ERROR] plugin/faulty: no luck"]);
  });

  it("ready, accepts, metadata and notices that throw are told and counted", async () => {
    const running = testOf({
      ready: failing,
      accepts: failing,
      provideMetadata: failing,
      unrouted: failing,
      forget: failing,
    });
    const [instance] = running.instances;
    const query = running.query(QUESTION);
    assert.equal(instance?.ready?.(), false);
    instance?.provideMetadata?.(query);
    instance?.unrouted?.(query, new Failure(Rcode.REFUSED));
    instance?.forget?.([]);
    assert.throws(() => instance?.accepts?.(query), PluginPanic);
    assert.equal(running.log.lines.length, 4);
    assert.equal(await panicsOf(running), 5);
  });

  it("members of classes find their private fields, and missing ones stay missing", () => {
    class Counting implements PluginInstance {
      #count = 0;
      readonly metadataZones = new ZoneList([]);
      ready(): boolean {
        return ++this.#count > 1;
      }
    }
    const counting = new Counting();
    const [instance] = testOf(counting).instances;
    assert.deepEqual([instance?.ready?.(), instance?.ready?.()], [false, true]);
    assert.equal(instance?.metadataZones, counting.metadataZones);
    assert.deepEqual(
      (["handle", "stop", "accepts", "forget"] as const).filter((key) => instance?.[key] !== undefined),
      [],
    );
  });
});

describe("the configuration of an isolated plugin", () => {
  for (const [what, parse] of [
    [
      "throws",
      () => {
        throw new Error("odd");
      },
    ],
    ["is no list", () => 7],
  ] as const) {
    it(`a parser that ${what} is an error at the directive`, () => {
      const definition = {
        ...define(undefined),
        config: { description: bareDirective().description, parse: parse as never },
      };
      assert.throws(
        () => PluginTest.of(isolated(definition, 0), "faulty"),
        (error) =>
          error instanceof ConfigRefused &&
          error.codes.includes("PLUGIN_FAILED") &&
          /Corefile:2:1/.test(error.message),
      );
    });
  }

  it("configure that throws is an error at the directive", () => {
    const definition = {
      ...define(undefined),
      configure: () => {
        throw new Error("odd");
      },
    };
    assert.throws(
      () => PluginTest.of(isolated(definition, 0), "faulty"),
      /plugin 'faulty' failed to read this: odd/,
    );
  });
});
