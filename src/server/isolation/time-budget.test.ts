import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { afterNext, type Next } from "../../plugin/chain/handler.ts";
import { bareDirective } from "../../plugin/config/schema.ts";
import type { PluginDefinition } from "../../plugin/contract/define-plugin.ts";
import type { PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { PluginTest } from "../../plugin/testing.ts";
import { isolated } from "./isolation.ts";
import { PluginOverrun } from "./time-budget.ts";

const QUESTION = { name: "a.example." };

function testOf(instance: PluginInstance) {
  const definition: PluginDefinition<object> = {
    name: "slow",
    summary: "Is tested.",
    config: bareDirective(),
    create: () => instance,
  };
  return PluginTest.of(isolated(definition, 1_000), "slow");
}

function later(): { readonly outcome: Promise<Outcome>; readonly settle: (outcome: Outcome) => void } {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  return { outcome: promise, settle: resolve };
}

async function overruns(running: ReturnType<typeof testOf>): Promise<number> {
  const { body } = await running.metrics.expose();
  return Number(/^portolan_plugin_overruns_total\{plugin="slow"\} (\d+)$/m.exec(body)?.[1] ?? 0);
}

describe("the time budget of an isolated plugin", () => {
  it("leaves an answer at hand as it is, without a promise", () => {
    const running = testOf({ handle: (query) => query.reply({}) });
    assert.ok(!(running.outcome(QUESTION) instanceof Promise));
  });

  it("lets a handler wait for as long as it may", async () => {
    const { outcome, settle } = later();
    const queries: Query[] = [];
    const running = testOf({
      handle(query) {
        queries.push(query);
        return outcome;
      },
    });
    const asked = running.outcome(QUESTION);
    running.clock.advance(999);
    const reply = queries[0]?.reply({}) ?? assert.fail();
    settle(reply);
    assert.equal(await asked, reply);
    running.clock.advance(10_000);
    assert.equal(await overruns(running), 0);
  });

  it("fails the query when a handler does not come to an end, counts it, and says so", async () => {
    const running = testOf({ handle: () => later().outcome });
    const asked = running.outcome(QUESTION);
    running.clock.advance(1_000);
    const outcome = await asked;
    assert.ok(outcome.kind === "failed" && outcome.error instanceof PluginOverrun);
    assert.equal(outcome.rcode, 2);
    assert.equal(outcome.error.message, "plugin slow gave no answer within 1s");
    assert.equal(await overruns(running), 1);
    assert.deepEqual(running.log.lines, [
      "[ERROR] plugin/slow: no answer within 1s for a.example.: SERVFAIL",
    ]);
  });

  it("writes one line a second, however many fail", async () => {
    const running = testOf({ handle: () => later().outcome });
    const first = [1, 2, 3].map(async () => running.outcome(QUESTION));
    running.clock.advance(1_000);
    await Promise.all(first);
    const next = running.outcome(QUESTION);
    running.clock.advance(1_000);
    await next;
    assert.deepEqual(running.log.lines, [
      "[ERROR] plugin/slow: no answer within 1s for a.example.: SERVFAIL",
      "[ERROR] plugin/slow: no answer within 1s for a.example. and for 2 queries before it: SERVFAIL",
    ]);
    assert.equal(await overruns(running), 4);
  });

  it("does not count the time of the rest of the chain", async () => {
    const { outcome, settle } = later();
    const queries: Query[] = [];
    const next: Next = (query) => {
      queries.push(query);
      return outcome;
    };
    const running = testOf({
      handle: (query, behind) => afterNext(behind(query), query, (settled) => settled),
    });
    const asked = running.outcome({ ...QUESTION, next });
    running.clock.advance(60_000);
    const reply = queries[0]?.reply({}) ?? assert.fail();
    settle(reply);
    assert.equal(await asked, reply);
    assert.equal(await overruns(running), 0);
  });

  it("counts again once the rest of the chain is done", async () => {
    const { outcome, settle } = later();
    const running = testOf({
      async handle(query, behind) {
        await behind(query);
        return later().outcome;
      },
    });
    const asked = running.outcome({ ...QUESTION, next: () => outcome });
    running.clock.advance(60_000);
    settle(running.query(QUESTION).reply({}));
    await outcome;
    await Promise.resolve();
    running.clock.advance(1_000);
    assert.equal((await asked).kind, "failed");
  });

  it("hands on what the rest of the chain promised, unwatched", () => {
    const { outcome } = later();
    const running = testOf({ handle: (query, behind) => behind(query) });
    assert.equal(running.outcome({ ...QUESTION, next: () => outcome }), outcome);
  });

  it("passes a rejection on", async () => {
    const running = testOf({ handle: () => Promise.reject(new Error("no")) });
    await assert.rejects(async () => running.outcome(QUESTION), /^Error: no$/);
  });

  it("keeps hooks, with the instance's private fields", async () => {
    class Instance implements PluginInstance {
      readonly #calls: string[] = [];
      handle(query: Query): Outcome {
        return query.reply({});
      }
      start(): void {
        this.#calls.push("start");
      }
      started(): void {
        this.#calls.push("started");
      }
      ready(): boolean {
        return this.#calls.length > 1;
      }
      stop(): void {
        this.#calls.push("stop");
      }
      get calls(): string {
        return this.#calls.join();
      }
    }
    const instance = new Instance();
    const running = testOf(instance);
    const [guarded] = running.instances;
    assert.equal(guarded?.ready?.(), false);
    await running.start();
    assert.equal(guarded?.ready?.(), true);
    await running.stop();
    assert.equal(instance.calls, "start,started,stop");
    for (const absent of ["accepts", "metadataZones", "provideMetadata", "unrouted"])
      assert.ok(guarded !== undefined && !(absent in guarded));
  });
});
