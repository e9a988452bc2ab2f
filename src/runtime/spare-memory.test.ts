import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../lib/time/clock.ts";
import { type SpareMemory, watchSpareMemory } from "./spare-memory.ts";

const MIB = 1024 * 1024;

function watch() {
  const clock = new FakeClock();
  const begin = clock.now();
  const done: string[] = [];
  const mebibytes = { files: 55, own: 40 };
  const note = (what: string): void => void done.push(`${what} at ${(clock.now() - begin) / 1000}`);
  const memory: SpareMemory = {
    resident() {
      if (Number.isNaN(mebibytes.own)) throw new Error("EMFILE: too many open files");
      return { files: mebibytes.files * MIB, own: mebibytes.own * MIB };
    },
    async releaseFiles() {
      note("files");
      mebibytes.files = Math.min(mebibytes.files, 15);
    },
    async trim() {
      note("trim");
      mebibytes.own = Math.min(mebibytes.own, 36);
    },
  };
  const watching = watchSpareMemory(memory, clock);
  const soon = (): void => watching.soon();
  const advance = async (seconds: number): Promise<void> => {
    clock.advance(seconds * 1000);
    await new Promise(setImmediate);
  };
  return { advance, done, mebibytes, soon };
}

test("gives back what the start left, and then what has grown", async () => {
  const { advance, done, mebibytes } = watch();
  await advance(0);
  await advance(1);
  await advance(2);
  assert.deepEqual(done, ["trim at 0", "files at 0"]);
  mebibytes.files = 25;
  mebibytes.own = 39;
  await advance(4);
  assert.deepEqual(done.slice(2), ["files at 7"]);
  await advance(8);
  mebibytes.own = 41;
  await advance(15);
  assert.deepEqual(done.slice(3), ["trim at 30"]);
  // The pauses grow no more.
  mebibytes.files = 25;
  await advance(14.9);
  assert.equal(done.length, 4);
  await advance(0.1);
  assert.deepEqual(done.slice(4), ["files at 45"]);
});

test("does not release pages of files again that came back a moment later", async () => {
  const { advance, done, mebibytes, soon } = watch();
  for (const pause of [0, 1, 2, 4]) await advance(pause);
  mebibytes.files = 25;
  await advance(8);
  assert.deepEqual(done.slice(2), ["files at 15"]);
  for (let check = 0; check < 3; check++) {
    mebibytes.files = 25;
    await advance(15);
  }
  assert.equal(done.length, 3);
  await advance(15);
  assert.deepEqual(done.slice(3), ["files at 75"]);
  mebibytes.files = 25;
  soon();
  await advance(0);
  assert.deepEqual(done.slice(4), ["files at 75"]);
});

test("takes less than was left for what there was before", async () => {
  const { advance, done, mebibytes } = watch();
  await advance(0);
  await advance(1);
  mebibytes.own = 30;
  await advance(2);
  mebibytes.own = 35;
  await advance(4);
  assert.deepEqual(done.slice(2), ["trim at 7"]);
});

test("goes on where the system does not say how much memory there is", async () => {
  const { advance, done, mebibytes } = watch();
  mebibytes.own = Number.NaN;
  await advance(0);
  assert.deepEqual(done, []);
  mebibytes.own = 40;
  await advance(1);
  assert.deepEqual(done, ["trim at 1", "files at 1"]);
});

test("looks at once behind a reload, and each second for some time", async () => {
  const { advance, done, mebibytes, soon } = watch();
  for (const pause of [0, 1, 2, 4, 8]) await advance(pause);
  mebibytes.files = 25;
  soon();
  // The pause of 15 seconds that was begun does not delay the next check.
  await advance(0);
  assert.deepEqual(done.slice(2), ["files at 15"]);
  for (let second = 0; second < 8; second++) {
    mebibytes.files = 25;
    await advance(1);
  }
  assert.equal(done.length, 11);
  mebibytes.files = 25;
  await advance(1);
  assert.equal(done.length, 11);
  await advance(1);
  assert.deepEqual(done.slice(11), ["files at 25"]);
});

test("a look that is under way is followed by the next one at once", async () => {
  const { advance, done, mebibytes, soon } = watch();
  await advance(0);
  mebibytes.files = 25;
  soon();
  soon();
  await advance(0);
  assert.deepEqual(done, ["trim at 0", "files at 0", "files at 0"]);
  await advance(0.9);
  assert.equal(done.length, 3);
});
