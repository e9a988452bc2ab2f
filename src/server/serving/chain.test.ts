import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/numbers.ts";
import { afterNext, afterwards, gatekeeper, type Handler } from "../../plugin/chain/handler.ts";
import { DROPPED, type Outcome } from "../../plugin/query/outcome.ts";
import { makeTestQuery } from "../../plugin/testing.ts";
import { buildChain, buildQueryChain, witnessesOf } from "./chain.ts";

const answersLater: Handler = async (query) => query.reply({ rcode: Rcode.NXDOMAIN });

const follows =
  (after: (outcome: Outcome) => Outcome): Handler =>
  (query, next) =>
    afterNext(next(query), query, after);

async function ask(...handlers: Handler[]) {
  const panics: string[] = [];
  const chain = buildChain(
    handlers.map((handle, place) => ({ name: `plugin${place}`, handle })),
    (plugin, error) => panics.push(`${plugin}: ${error.message}`),
  );
  assert.ok(chain !== undefined);
  const query = makeTestQuery({ name: "a.example." });
  const outcome = await chain(query);
  assert.ok(outcome.kind !== "dropped");
  assert.equal(query.link, undefined);
  return { outcome, panics };
}

test("those in front see a late answer, from the inside out, with the name of the plugin that gave it", async () => {
  const seen: string[] = [];
  const watch = (place: string) =>
    follows((outcome) => {
      seen.push(`${place} ${outcome.kind === "dropped" ? "" : outcome.plugin}`);
      return outcome;
    });
  const { outcome } = await ask(watch("outer"), watch("inner"), answersLater);
  assert.deepEqual(seen, ["inner plugin2", "outer plugin2"]);
  assert.deepEqual([outcome.kind, outcome.rcode, outcome.plugin], ["reply", Rcode.NXDOMAIN, "plugin2"]);
});

test("what a plugin throws at a late answer is its own failure, which those in front of it see", async () => {
  const seen: string[] = [];
  const { outcome, panics } = await ask(
    follows((outcome) => {
      seen.push(outcome.kind);
      return outcome;
    }),
    follows(() => {
      throw new Error("broken");
    }),
    answersLater,
  );
  assert.deepEqual(seen, ["failed"]);
  assert.deepEqual([outcome.rcode, outcome.plugin], [Rcode.SERVFAIL, "plugin1"]);
  assert.deepEqual(panics, ["plugin1: plugin plugin1 failed: broken"]);
});

test("plugins that only look at a late answer are one step of it, and each is watched over by itself", async () => {
  const seen: string[] = [];
  const look = (place: string): Handler =>
    afterwards(assert.fail, (outcome) => {
      seen.push(`${place} ${outcome.kind === "dropped" ? "" : `${outcome.kind} of ${outcome.plugin}`}`);
      return outcome;
    });
  const breaks = afterwards(assert.fail, () => {
    throw new Error("broken");
  });
  const { outcome, panics } = await ask(look("outer"), breaks, look("inner"), answersLater);
  assert.deepEqual(seen, ["inner reply of plugin3", "outer failed of plugin1"]);
  assert.deepEqual([outcome.rcode, outcome.plugin], [Rcode.SERVFAIL, "plugin1"]);
  assert.deepEqual(panics, ["plugin1: plugin plugin1 failed: broken"]);
});

test("a plugin that only looks at late answers and gives another one is named with it", async () => {
  const replaces = afterwards(assert.fail, (_outcome, query) => query.reply({ rcode: Rcode.REFUSED }));
  const { outcome } = await ask(replaces, answersLater);
  assert.deepEqual([outcome.kind, outcome.rcode, outcome.plugin], ["reply", Rcode.REFUSED, "plugin0"]);
});

test("a promise of a plugin's own that rejects is its failure as well", async () => {
  const { outcome, panics } = await ask(
    follows((late) => late),
    (query) => afterNext(Promise.reject(new Error("no answer")), query, (late) => late),
    answersLater,
  );
  assert.deepEqual([outcome.rcode, outcome.plugin], [Rcode.SERVFAIL, "plugin1"]);
  assert.deepEqual(panics, ["plugin1: plugin plugin1 failed: no answer"]);
});

test("who goes on with what afterNext gave gets it changed, and is watched over", async () => {
  const { outcome, panics } = await ask(async (query, next) => {
    const changed = await afterNext(next(query), query, () => query.reply({ rcode: Rcode.REFUSED }));
    assert.ok(changed.kind === "reply" && changed.rcode === Rcode.REFUSED);
    throw new Error("after all");
  }, answersLater);
  assert.equal(outcome.rcode, Rcode.SERVFAIL);
  assert.deepEqual(panics, ["plugin0: plugin plugin0 failed: after all"]);
});

test("one promise stands for all plugins in a row that follow, and none for one that only passes on", async () => {
  const given: unknown[] = [];
  const handlers: Handler[] = [
    (query, next) => next(query),
    follows((outcome) => outcome),
    (query, next) => {
      const outcome = next(query);
      given.push(outcome, query.pending);
      return outcome;
    },
    answersLater,
  ];
  await ask(...handlers);
  assert.ok(given[0] instanceof Promise);
  assert.equal(given[0], given[1]);
});

test("plugins in a row that follow share a promise, and one that waits by itself gets only what is behind it", async () => {
  const given: unknown[] = [];
  const seen: string[] = [];
  const watch =
    (place: string): Handler =>
    (query, next) => {
      const followed = afterNext(next(query), query, (outcome) => {
        seen.push(place);
        return outcome;
      });
      given.push(followed);
      return followed;
    };
  const waits: Handler = async (query, next) => {
    const outcome = await next(query);
    seen.push("waits");
    return outcome;
  };
  await ask(watch("outermost"), waits, watch("outer"), watch("inner"), answersLater);
  assert.equal(given[0], given[1]);
  assert.notEqual(given[1], given[2]);
  assert.deepEqual(seen, ["inner", "outer", "waits", "outermost"]);
});

test("a query that no client sent goes past plugins that only record, and its trace shows them", async () => {
  const recorded: string[] = [];
  const entered: string[] = [];
  const record: Handler = afterwards((outcome, query) => {
    recorded.push(`${query.name}`);
    return outcome;
  });
  const chain = buildQueryChain(
    [
      { name: "log", instance: { handle: record, recordsOnly: true } },
      { name: "answer", instance: { handle: answersLater } },
    ],
    () => undefined,
  );
  const ask = async (name: string, leavesNoMark?: boolean) => {
    const query = makeTestQuery({ name });
    if (leavesNoMark !== undefined)
      query.trace = {
        leavesNoMark,
        note: () => undefined,
        enter: (plugin) => entered.push(`${name} ${plugin}`),
        leave: () => undefined,
      };
    return chain?.(query);
  };
  await ask("client.");
  await ask("followed.", false);
  const outcome = await ask("explained.", true);
  assert.equal(outcome?.kind, "reply");
  assert.deepEqual(recorded, ["client.", "followed."]);
  assert.deepEqual(entered, ["followed. log", "followed. answer", "explained. log", "explained. answer"]);
});

test("an answer may be repeated past plugins that can do without it or hear of it later, and past no others", () => {
  const look = (outcome: Outcome): Outcome => outcome;
  const source = { name: "source", instance: { handle: answersLater } };
  const indifferent = { name: "errors", instance: { handle: afterwards(look, look, { repeatable: true }) } };
  const witness = { repeated: () => undefined };
  const witnessing = { name: "prometheus", instance: { handle: afterwards(look), witness } };
  const strict = { name: "log", instance: { handle: afterwards(look) } };
  assert.deepEqual(witnessesOf([indifferent, witnessing, source]), [witness]);
  assert.deepEqual(witnessesOf([indifferent, source]), []);
  assert.equal(witnessesOf([indifferent, strict, source]), undefined);
});

test("plugins in front of one that refuses queries see its refusals, and those behind it do not get the query", async () => {
  const seen: string[] = [];
  const watch = (place: string): Handler =>
    afterwards((outcome) => {
      seen.push(`${place} ${outcome.kind}`);
      return outcome;
    });
  const refuses = gatekeeper(
    () => DROPPED,
    () => assert.fail("reviewed"),
  );
  const chain = buildChain(
    [watch("first"), watch("second"), refuses, watch("behind"), answersLater].map((handle, place) => ({
      name: `plugin${place}`,
      handle,
    })),
    (_plugin, error) => assert.fail(error.message),
  );
  assert.equal(await chain?.(makeTestQuery({ name: "a.example." })), DROPPED);
  assert.deepEqual(seen, ["second dropped", "first dropped"]);
});

test("a plugin that refuses some queries reviews the outcome of the others, now or later", async () => {
  const seen: string[] = [];
  const admits = gatekeeper(
    () => undefined,
    (outcome) => {
      seen.push(outcome.kind);
      return outcome;
    },
  );
  assert.equal((await ask(admits, answersLater)).outcome.rcode, Rcode.NXDOMAIN);
  assert.equal((await ask(admits, (query) => query.fail(Rcode.REFUSED))).outcome.rcode, Rcode.REFUSED);
  assert.deepEqual(seen, ["reply", "failed"]);
  const broken = gatekeeper(
    () => {
      throw new Error("broken");
    },
    (outcome) => outcome,
  );
  const { outcome, panics } = await ask(broken, answersLater);
  assert.deepEqual([outcome.rcode, outcome.plugin], [Rcode.SERVFAIL, "plugin0"]);
  assert.deepEqual(panics, ["plugin0: plugin plugin0 failed: broken"]);
});
