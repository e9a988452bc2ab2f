import assert from "node:assert/strict";
import { test } from "node:test";
import { Name, RecordType } from "../../dns/index.ts";
import { CACHE } from "../../plugin/services/cache-view.ts";
import { answering, PluginTest, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

async function filled() {
  const running = PluginTest.of(cache, "cache 60");
  const keep = (name: string, type: string, value: string) =>
    running.ask({ name, type, next: answering({ answer: records(`${name} 40 IN ${type} ${value}`) }) });
  await keep("a.example.", "A", "192.0.2.1");
  await keep("A.example.", "AAAA", "2001:db8::1");
  await keep("deep.a.example.", "A", "192.0.2.2");
  await keep("b.example.", "A", "192.0.2.3");
  const [view] = CACHE.among([{ instance: running.instances[0] ?? {} }]);
  assert.ok(view !== undefined);
  return { running, view };
}

test("shows the answers for a name and those below it, with their age", async () => {
  const { running, view } = await filled();
  running.clock.advance(10_000);
  const shown = view
    .look(Name.parse("A.EXAMPLE."), 10)
    .map(
      ({ name, type, ttl, remaining, age, answers }) =>
        `${name} ${type} ${ttl} ${remaining} ${age} ${answers}`,
    );
  assert.deepEqual(shown.sort(), [
    "a.example. 1 40 30 10 1",
    "a.example. 28 40 30 10 1",
    "deep.a.example. 1 40 30 10 1",
  ]);
  assert.equal(view.look(Name.parse("example."), 2).length, 2);
  assert.equal(view.look(Name.parse("other."), 2).length, 0);
  assert.deepEqual([view.entries, view.zones], [4, ["."]]);
});

for (const [title, below, type, left] of [
  ["a type of a name", false, RecordType.AAAA, ["a.example. 1", "b.example. 1", "deep.a.example. 1"]],
  ["a name", false, undefined, ["b.example. 1", "deep.a.example. 1"]],
  ["a type below a name", true, RecordType.A, ["a.example. 28", "b.example. 1"]],
  ["all at and below a name", true, undefined, ["b.example. 1"]],
] as const) {
  test(`drops ${title}, and nothing else`, async () => {
    const { view } = await filled();
    assert.equal(await view.forget(Name.parse("a.example."), below, type), 4 - left.length);
    const shown = view.look(Name.parse("example."), 10).map(({ name, type }) => `${name} ${type}`);
    assert.deepEqual(shown.sort(), left);
  });
}

const MANY = 3_000;

for (const [title, type, forgotten, left] of [
  ["of one type", RecordType.AAAA, MANY, MANY + 4],
  ["of any type", undefined, 2 * MANY, 4],
] as const) {
  test(`drops all of many answers ${title} below a name, and returns their number`, async () => {
    const { running, view } = await filled();
    for (let number = 0; number < MANY; number++)
      for (const [type, value] of [
        ["A", "192.0.2.1"],
        ["AAAA", "2001:db8::1"],
      ] as const) {
        const name = `n${number}.many.example.`;
        await running.ask({
          name,
          type,
          next: answering({ answer: records(`${name} 40 IN ${type} ${value}`) }),
        });
      }
    assert.equal(view.entries, 2 * MANY + 4);
    const count = view.forget(Name.parse("many.example."), true, type);
    await running.clock.settle(10);
    assert.deepEqual([await count, view.entries], [forgotten, left]);
  });
}

test("a cache stopped during a removal returns the number removed so far", async () => {
  const { running, view } = await filled();
  for (let number = 0; number < MANY; number++) {
    const name = `n${number}.many.example.`;
    await running.ask({ name, type: "A", next: answering({ answer: records(`${name} 40 IN A 192.0.2.1`) }) });
  }
  const count = view.forget(Name.parse("many.example."), true);
  await running.instances[0]?.stop?.();
  assert.equal(await count, 2_000);
  assert.equal(await view.forget(Name.parse("many.example."), true, RecordType.A), 0);
  assert.equal(await view.forget(Name.parse("b.example."), false), 0);
});
