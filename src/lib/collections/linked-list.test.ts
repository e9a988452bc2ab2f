import assert from "node:assert/strict";
import { test } from "node:test";
import { LinkedList, type ListPlace } from "./linked-list.ts";

test("entries stand in the order in which they came", () => {
  const list = new LinkedList<string>();
  for (const value of ["a", "b", "c"]) list.append(value);
  assert.deepEqual([...list], ["a", "b", "c"]);
  assert.equal(list.first, "a");
  assert.equal(list.size, 3);
});

test("an empty list has no first entry", () => {
  const list = new LinkedList<string>();
  assert.equal(list.first, undefined);
  assert.deepEqual([...list], []);
});

test("what is removed is gone once, and points nowhere", () => {
  const list = new LinkedList<string>();
  list.append("a");
  const place = list.append("b");
  list.append("c");
  list.remove(place);
  list.remove(place);
  list.moveToEnd(place);
  assert.deepEqual([...list], ["a", "c"]);
  assert.equal(list.size, 2);
  assert.equal(place.next, place);
  assert.equal(place.previous, place);
});

test("an entry that is moved to the end is the last one", () => {
  const list = new LinkedList<string>();
  const place = list.append("a");
  list.append("b");
  list.moveToEnd(place);
  assert.deepEqual([...list], ["b", "a"]);
  assert.equal(list.size, 2);
});

test("the entry that is visited may be removed", () => {
  const list = new LinkedList<number>();
  const places = new Map<number, ListPlace<number>>();
  for (let value = 0; value < 5; value++) places.set(value, list.append(value));
  const visited: number[] = [];
  for (const value of list) {
    visited.push(value);
    const place = places.get(value);
    if (place !== undefined && value % 2 === 0) list.remove(place);
  }
  assert.deepEqual(visited, [0, 1, 2, 3, 4]);
  assert.deepEqual([...list], [1, 3]);
});

test("like a Map under random additions, removals and moves", () => {
  const list = new LinkedList<number>();
  const model = new Map<number, ListPlace<number>>();
  let state = 12345;
  const random = (below: number): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let step = 0; step < 5_000; step++) {
    const keys = [...model.keys()];
    const key = keys[random(keys.length)];
    const place = key === undefined ? undefined : model.get(key);
    const act = random(5);
    if (key === undefined || place === undefined || (act > 2 && model.size < 50))
      model.set(step, list.append(step));
    else if (act === 0) {
      list.moveToEnd(place);
      model.delete(key);
      model.set(key, place);
    } else {
      list.remove(place);
      model.delete(key);
    }
    assert.equal(list.size, model.size);
  }
  assert.deepEqual([...list], [...model.keys()]);
});
