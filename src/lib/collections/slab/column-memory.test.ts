import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { OctetArena } from "../octet-arena.ts";
import { ColumnMemory } from "./column-memory.ts";
import { GrowingIndex, NO_ENTRY } from "./growing-index.ts";

/** What lies in a memory: in another thread it is made in the same way. */
class Parts {
  readonly memory = new ColumnMemory();
  readonly small = this.memory.uint8();
  readonly middle = this.memory.uint16();
  readonly large = this.memory.int32();
  readonly index = new GrowingIndex(this.memory);
  readonly arena = new OctetArena(this.memory);
}

const step = fc.record({
  kind: fc.constantFrom("cell", "cell", "entry", "entry", "remove", "prepare", "prepare", "share", "join"),
  index: fc.integer({ min: 0, max: 40_000 }),
  value: fc.integer({ min: 0, max: 200 }),
});

test("columns and their tables equal a map: unshared, shared, and in a reader that joined", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const [writer, reader] = [new Parts(), new Parts()];
      const cells = new Map<number, number>();
      const entries = new Map<number, number>();
      const texts = new Map<number, number>();
      let moves = 0;
      let preparing: Generator<undefined> | undefined;
      for (const { kind, index, value } of steps) {
        const { memory } = writer;
        if (kind === "prepare") {
          preparing ??= memory.prepareToShare();
          if (preparing.next().done === true) preparing = undefined;
        } else if (kind === "share") memory.share(() => moves++);
        else if (kind === "join") reader.memory.join(memory.share());
        else {
          memory.beginWriting();
          if (kind === "cell") {
            for (const column of [writer.small, writer.middle, writer.large]) {
              column.reserve(index);
              column.cells[index] = value;
            }
            cells.set(index, value);
            texts.set(index, writer.arena.store(Uint8Array.of(value, 255 - value)));
          } else if (kind === "entry" && !entries.has(index)) {
            // Few hashes, so that chains are long.
            writer.index.add(index, value);
            entries.set(index, value);
          } else if (kind === "remove" && entries.delete(index)) writer.index.remove(index);
          memory.endWriting();
        }
        const known = [writer];
        if (reader.memory.isReader) {
          if (!reader.memory.beginReading()) reader.memory.join(memory.share());
          assert.ok(reader.memory.beginReading());
          known.push(reader);
        }
        for (const { small, middle, large, index: found, arena } of known) {
          for (const [at, expected] of cells) {
            for (const column of [small, middle, large]) assert.equal(column.cells[at], expected);
            assert.deepEqual([...arena.view(texts.get(at) ?? 0, 2)], [expected, 255 - expected]);
          }
          for (const hash of new Set(entries.values())) {
            const chain: number[] = [];
            for (let entry = found.first(hash); entry !== NO_ENTRY; entry = found.after(entry))
              chain.push(entry);
            const expected = [...entries].filter(([, own]) => own === hash).map(([entry]) => entry);
            assert.deepEqual(chain, expected);
          }
        }
        if (reader.memory.isReader) assert.ok(reader.memory.isWhole());
      }
    }),
    { numRuns: 100 },
  );
});

test("who reads sees that a change is being made, that there was one, and that columns have moved", () => {
  const [writer, reader] = [new Parts(), new Parts()];
  let moves = 0;
  reader.memory.join(writer.memory.share(() => moves++));
  assert.ok(reader.memory.beginReading());
  writer.memory.beginWriting();
  assert.ok(!reader.memory.isWhole());
  assert.ok(!reader.memory.beginReading());
  writer.memory.endWriting();
  assert.ok(reader.memory.beginReading());
  writer.memory.beginWriting();
  writer.memory.endWriting();
  assert.ok(!reader.memory.isWhole());
  assert.equal(moves, 0);
  writer.memory.beginWriting();
  writer.large.reserve(1_000_000);
  writer.memory.endWriting();
  assert.equal(moves, 1);
  assert.ok(!reader.memory.beginReading());
  reader.memory.join(writer.memory.share());
  assert.ok(reader.memory.beginReading() && reader.memory.isWhole());
  assert.equal(reader.large.cells.length, writer.large.cells.length);
  assert.throws(() => reader.memory.beginWriting(), /another thread writes here/);
});

test("one thread alone counts nothing, and shared cells that were never in use take no octets", () => {
  const { memory, large } = new Parts();
  memory.beginWriting();
  large.reserve(9);
  memory.endWriting();
  assert.ok(!memory.isShared && memory.beginReading() && memory.isWhole());
  assert.equal(large.octets, large.cells.byteLength);
  memory.share();
  assert.ok(large.cells.length > 1_000);
  assert.equal(large.octets, 40);
});
