import assert from "node:assert/strict";
import { test } from "node:test";
import { FinishedQuery } from "../plugin/stream/query-reader.ts";
import { COUNTED_TYPES, History, STEP } from "./history.ts";

const START = 1_700_000_000_000;

function query(part: Partial<FinishedQuery>): FinishedQuery {
  return Object.assign(new FinishedQuery(), { rcode: 0, type: 1, duration: 1, weight: 1 }, part);
}

function at(seconds: number): number {
  return START + 1_000 * seconds;
}

test("counts by what came of queries, weighted", () => {
  const history = new History();
  history.advance(START, 0);
  history.count(query({ plugin: "cache", weight: 5 }));
  history.count(query({ rcode: 3, type: 28 }));
  history.count(query({ rcode: 2 }));
  history.count(query({ rcode: 23, type: 999 }));
  history.count(query({ rcode: undefined }));
  const [point] = history.points();
  assert.deepEqual(
    [point?.queries, point?.nxdomain, point?.errors, point?.unanswered, point?.hits],
    [9, 1, 2, 1, 5],
  );
  const { rcodes, types, unanswered } = history.minute();
  assert.deepEqual([rcodes[0], rcodes[3], rcodes[2], rcodes[15], unanswered], [5, 1, 1, 1, 1]);
  assert.deepEqual([types[0], types[1], types[COUNTED_TYPES.length]], [7, 1, 1]);
});

test("an hour stays, and the minute is the last one", () => {
  const history = new History();
  for (let second = 0; second < 2 * 3_600; second += STEP) {
    history.advance(at(second), 1_000 * second);
    history.count(query({}));
  }
  const points = history.points();
  assert.equal(points.length, 3_600 / STEP);
  assert.ok(points.every(({ queries }) => queries === 1));
  assert.equal((points.at(-1)?.time ?? 0) - (points[0]?.time ?? 0), 1_000 * (3_600 - STEP));
  assert.equal(history.minute().rcodes[0], 60 / STEP);
});

test("who has some of it gets the rest, and who has what is not of it gets all", () => {
  const history = new History();
  for (let second = 0; second < 60; second += STEP) history.advance(at(second), 1_000 * second);
  const all = history.points();
  assert.deepEqual(history.points(at(50)), all.slice(-2));
  assert.deepEqual(history.newestPoints(), all.slice(-2));
  assert.deepEqual(history.points(at(-4_000)), all);
  assert.deepEqual(history.points(at(60)), all);
  // The wall clock is set.
  history.advance(at(600), 60_000);
  assert.deepEqual(
    history.newestPoints().map(({ time }) => time),
    [at(595), at(600)],
  );
  const begun = new History();
  begun.advance(START, 0);
  assert.equal(begun.newestPoints().length, 1);
});

test("a pause leaves empty points, and nothing of what was an hour ago", () => {
  const history = new History();
  history.advance(START, 0);
  history.count(query({}));
  history.advance(at(60), 60_000);
  assert.deepEqual(
    [history.points().length, history.points()[0]?.queries, history.minute().rcodes[0]],
    [60 / STEP + 1, 1, 0],
  );
  history.advance(at(86_400), 86_400_000);
  assert.equal(history.points().length, 3_600 / STEP);
  assert.ok(history.points().every(({ queries }) => queries === 0));
});

for (const [direction, days] of [
  ["back", -2],
  ["ahead", 2],
] as const)
  test(`a wall clock that is set ${direction} loses nothing, and holds nothing up`, () => {
    const history = new History();
    for (let second = 0; second < 120; second += STEP) {
      history.advance(at(second), 1_000 * second);
      history.count(query({}));
    }
    const set = 86_400 * days;
    for (let second = 120; second < 240; second += STEP) {
      history.advance(at(set + second), 1_000 * second);
      history.count(query({}));
    }
    assert.equal(history.minute().rcodes[0], 60 / STEP);
    assert.deepEqual(
      history.points().map(({ time, queries }) => [time, queries]),
      Array.from({ length: 240 / STEP }, (_, each) => [at(set + each * STEP), 1]),
    );
  });

test("there is nothing before the beginning", () => {
  const history = new History();
  history.count(query({}));
  assert.deepEqual(history.points(), []);
  assert.equal(history.minute().rcodes[0], 0);
});
