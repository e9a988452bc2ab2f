import assert from "node:assert/strict";
import { test } from "node:test";
import { ColumnMemory } from "../../../lib/collections/slab/column-memory.ts";
import { StateReader, StoreBusyError } from "./state-reader.ts";

function pair() {
  const [writer, memory] = [new ColumnMemory(), new ColumnMemory()];
  const [written, read] = [writer.int32(1), memory.int32(1)];
  memory.join(writer.share());
  let forgotten = 0;
  const reader = new StateReader(memory, () => forgotten++);
  return { writer, written, memory, reader, look: () => read.cells[0], forgotten: () => forgotten };
}

test("who can come back is told at once that the store is busy", () => {
  const { writer, reader, look } = pair();
  assert.equal(reader.read(look), 0);
  writer.beginWriting();
  assert.throws(() => reader.read(look), StoreBusyError);
});

test("who cannot come back waits for a writer that lost its processor, but not for long", () => {
  const { writer, written, reader, look } = pair();
  writer.beginWriting();
  written.cells[0] = 7;
  const before = performance.now();
  assert.equal(reader.tryRead(look), undefined);
  assert.ok(performance.now() - before > 1, "it has slept");
  writer.endWriting();
  assert.equal(reader.tryRead(look), 7);
});

test("who cannot come back does not wait for columns that have moved: a message has to come first", () => {
  const { writer, written, memory, reader, look } = pair();
  writer.write(() => written.reserve(1_000_000));
  let naps = 0;
  const sleep = memory.sleep.bind(memory);
  memory.sleep = (milliseconds) => {
    naps++;
    return sleep(milliseconds);
  };
  assert.equal(reader.tryRead(look), undefined);
  assert.equal(naps, 1);
  memory.join(writer.share());
  assert.equal(reader.tryRead(look), 0);
});

test("what was found in vain is forgotten, and found anew", () => {
  const { writer, written, reader, look, forgotten } = pair();
  let times = 0;
  const found = reader.read(() => {
    // As if the other thread wrote meanwhile.
    if (times++ < 2)
      writer.write(() => {
        written.cells[0] = times;
      });
    return look();
  });
  assert.deepEqual([found, times, forgotten()], [2, 3, 2]);
});
