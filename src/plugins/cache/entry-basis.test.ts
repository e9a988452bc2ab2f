/** Which cached answers may be repeated without a cache lookup, and until when. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, Name } from "../../dns/index.ts";
import type { Next } from "../../plugin/index.ts";
import type { AnswerBasis } from "../../plugin/query/repetition.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import { makeCache } from "./fixtures/make-cache.ts";
import type { CacheHandler } from "./handler.ts";

const NAME = "www.example.org.";
const next: Next = (query) => query.reply({ answer: records(`${NAME} 300 IN A 192.0.2.1`) });

function basisFor(kept: CacheHandler, flags: number): AnswerBasis | undefined {
  const outcome = kept.handle(makeTestQuery({ name: NAME, flags }), next);
  assert.ok(!(outcome instanceof Promise) && outcome.kind === "reply");
  return outcome.basis;
}

test("an answer is valid as long as its entry", () => {
  const kept = makeCache().handler;
  assert.equal(basisFor(kept, Flag.RD), undefined);
  const basis = basisFor(kept, Flag.RD);
  assert.ok(basis !== undefined);
  const { numbers, place, value } = basis;
  assert.equal(numbers[place], value);
  kept.drop([Name.parse(NAME)]);
  assert.notEqual(numbers[place], value);
});

test("a recursive answer is no basis for a query without RD, which may get an entry of its own", () => {
  const kept = makeCache().handler;
  basisFor(kept, Flag.RD);
  assert.ok(basisFor(kept, Flag.RD) !== undefined);
  assert.equal(basisFor(kept, 0), undefined);
});

test("answers from before the cache joined another one are no longer valid", () => {
  const [kept, other] = [makeCache().handler, makeCache().handler];
  basisFor(kept, Flag.RD);
  const source = basisFor(kept, Flag.RD)?.source;
  assert.ok(source !== undefined);
  const { epoch } = source;
  kept.join(other.share());
  assert.notEqual(source.epoch, epoch);
});

test("a repeated answer survives a flood of names", () => {
  for (const isGiven of [true, false]) {
    const kept = makeCache("cache {\n success 1024\n}").handler;
    basisFor(kept, Flag.RD);
    const basis = basisFor(kept, Flag.RD);
    assert.ok(basis !== undefined);
    const { source, numbers, place, value } = basis;
    for (let index = 0; index < 8 * kept.store.success.capacity; index++) {
      const name = `flood-${index}.example.org.`;
      void kept.handle(makeTestQuery({ name }), (query) =>
        query.reply({ answer: records(`${name} 300 IN A 192.0.2.2`) }),
      );
      if (isGiven && index % 100 === 0) source.given?.(place);
    }
    assert.equal(numbers[place] === value, isGiven);
  }
});
