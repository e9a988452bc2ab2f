import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ChallengeTable } from "./challenge-table.ts";

test("a challenge is shown once every watcher has it", async () => {
  const table = new ChallengeTable();
  const heard = Promise.withResolvers<void>();
  const names: string[] = [];
  table.watch(async (changed) => void names.push(...changed.map(String)));
  table.watch(() => heard.promise);
  const { shown, hide } = table.add("_acme-challenge.example.org.", "text");
  let isShown = false;
  const waiting = shown.then(() => {
    isShown = true;
  });
  await nextTurn();
  assert.equal(isShown, false);
  assert.deepEqual(names, ["_acme-challenge.example.org."]);
  heard.resolve();
  await waiting;
  hide();
  assert.ok(table.isEmpty);
  assert.equal(names.length, 2);
});
