import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, readFile, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, it } from "node:test";
import { FakeClock } from "../time/clock.ts";
import { type FileReader, FileWatch, type FileWatchOptions, type ReadFile } from "./file-watch.ts";

describe("FileWatch", () => {
  it("hands out the content at the start, and says nothing while it stays", async () => {
    const { watch, clock, seen } = watchMemory({ a: "one", b: "two" });
    assert.deepEqual(textOf(await watch.start()), { a: "one", b: "two" });
    await clock.settle(100_000);
    assert.deepEqual(seen, []);
  });

  it("tells of all changes of one look at once", async () => {
    const { watch, clock, seen, files } = watchMemory({ a: "one", b: "two", c: "three" });
    await watch.start();
    files.write("a", "new");
    files.write("c", "");
    await clock.settle(999);
    assert.deepEqual(seen, []);
    await clock.settle(1);
    assert.deepEqual(seen, [{ a: "new", c: "" }]);
    await clock.settle(10_000);
    assert.equal(seen.length, 1);
  });

  it("does not take a new stamp for new content", async () => {
    const { watch, clock, seen, files } = watchMemory({ a: "one" });
    await watch.start();
    files.write("a", "one");
    await clock.settle(1000);
    assert.deepEqual(seen, []);
  });

  it("sees a second write that leaves the stamp of a young file as it was", async () => {
    const { watch, clock, seen, files } = watchMemory({ a: "one" });
    await watch.start();
    files.write("a", "two");
    await clock.settle(1000);
    files.writeKeepingStamp("a", "six");
    await clock.settle(1000);
    assert.deepEqual(seen, [{ a: "two" }, { a: "six" }]);
  });

  it("reads a file that has been left alone only once", async () => {
    const { watch, clock, files } = watchMemory({ a: "one" });
    await watch.start();
    await clock.settle(10_000);
    const reads = files.reads;
    assert.ok(reads <= 4, `${reads} reads`);
    await clock.settle(100_000);
    assert.equal(files.reads, reads);
  });

  it("reports a vanished file once, keeps its content, and knows it again", async () => {
    const { watch, clock, seen, errors, files } = watchMemory({ a: "one" });
    await watch.start();
    files.remove("a");
    await clock.settle(5000);
    assert.deepEqual(errors, ["a: Error: ENOENT"]);
    files.write("a", "one");
    await clock.settle(1000);
    files.remove("a");
    await clock.settle(1000);
    files.write("a", "two");
    await clock.settle(1000);
    assert.deepEqual(errors, ["a: Error: ENOENT", "a: Error: ENOENT"]);
    assert.deepEqual(seen, [{ a: "two" }]);
  });

  it("takes a file that appears later for a change", async () => {
    const { watch, clock, seen, errors, files } = watchMemory({}, { paths: ["late"] });
    assert.deepEqual(textOf(await watch.start()), {});
    assert.deepEqual(errors, ["late: Error: ENOENT"]);
    files.write("late", "here");
    await clock.settle(1000);
    assert.deepEqual(seen, [{ late: "here" }]);
  });

  it("spreads its looks by the jitter", async () => {
    const randoms = [0, 0.5, 1 - Number.EPSILON];
    const { watch, clock, files } = watchMemory(
      { a: "one" },
      { jitterMs: 400, random: () => randoms.shift() ?? 0.5 },
    );
    await watch.start();
    const looks: number[] = [];
    files.onRead = () => looks.push(Math.round(clock.now()));
    await clock.settle(3000);
    assert.deepEqual(looks, [800, 1800, 3000]);
  });

  it("waits for onChange before it looks again, and survives what it throws", async () => {
    const { watch, clock, errors, files } = watchMemory(
      { a: "one" },
      {
        onChange: () =>
          new Promise((_resolve, reject) => clock.after(5000, () => reject(new Error("bad zone")))),
      },
    );
    await watch.start();
    files.write("a", "two");
    await clock.settle(1000);
    let reads = 0;
    files.onRead = () => reads++;
    await clock.settle(4999);
    assert.deepEqual([reads, errors], [0, []]);
    await clock.settle(1001);
    assert.deepEqual([reads, errors], [1, ["undefined: Error: bad zone"]]);
  });

  it("is silent after stop, even if a look is under way", async () => {
    const { watch, clock, seen, errors, files } = watchMemory({ a: "one", b: "two" });
    await watch.start();
    files.write("a", "new");
    files.remove("b");
    const check = watch.check();
    watch.stop();
    await check;
    await clock.settle(10_000);
    assert.deepEqual([seen, errors, clock.pendingTimers], [[], [], 0]);
  });
});

describe("FileWatch on the disk", () => {
  let folder = "";
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "portolan-watch-"));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("sees writes and renames", async () => {
    const path = join(folder, "Corefile");
    await writeFile(path, "one");
    const { watch, seen } = watchDisk([path]);
    assert.deepEqual(textOf(await watch.start()), { [path]: "one" });
    await writeFile(path, "two");
    await watch.check();
    await writeFile(join(folder, "new"), "three");
    await rename(join(folder, "new"), path);
    await watch.check();
    await utimes(path, new Date(), new Date());
    await watch.check();
    assert.deepEqual(seen, [{ [path]: "two" }, { [path]: "three" }]);
  });

  it("follows the links of a ConfigMap mount when they are swapped", async () => {
    // The layout of the kubelet: key -> ..data/key, ..data -> a folder with a time in its name.
    const path = join(folder, "Corefile");
    const old = new Date(Date.now() - 86_400_000);
    for (const [version, content] of [
      ["..v1", "a b"],
      ["..v2", "a c"],
      ["..v3", "a c"],
    ] as const) {
      await mkdir(join(folder, version));
      await writeFile(join(folder, version, "Corefile"), content);
      await utimes(join(folder, version, "Corefile"), old, old);
    }
    await symlink("..v1", join(folder, "..data"));
    await symlink("..data/Corefile", path);
    const { watch, seen, errors } = watchDisk([path]);
    await watch.start();
    for (const version of ["..v2", "..v3"]) {
      await symlink(version, join(folder, "..data_tmp"));
      await rename(join(folder, "..data_tmp"), join(folder, "..data"));
      await watch.check();
      await rm(join(folder, "..v1"), { recursive: true, force: true });
    }
    assert.deepEqual(seen, [{ [path]: "a c" }]);
    assert.deepEqual(errors, []);
    assert.equal(await readFile(path, "utf8"), "a c");
  });

  it("refuses folders and named pipes instead of waiting for them", async (context) => {
    const pipe = join(folder, "pipe");
    if (spawnSync("mkfifo", [pipe]).status !== 0) return context.skip("no mkfifo here");
    const { watch, errors } = watchDisk([folder, pipe]);
    assert.deepEqual(textOf(await watch.start()), {});
    await watch.check();
    assert.deepEqual(errors, [
      `${folder}: UnsuitableFile: ${folder} is not a regular file`,
      `${pipe}: UnsuitableFile: ${pipe} is not a regular file`,
    ]);
  });
});

function watchMemory(contents: Record<string, string>, options: Partial<FileWatchOptions> = {}) {
  const clock = new FakeClock();
  const files = new MemoryFiles(clock);
  for (const [path, content] of Object.entries(contents)) files.write(path, content);
  return { ...watchWith({ paths: Object.keys(contents), clock, files, ...options }), clock, files };
}

function watchDisk(paths: readonly string[]) {
  return watchWith({ paths, clock: new FakeClock({ wallTime: Date.now() }) });
}

function watchWith(options: Pick<FileWatchOptions, "paths" | "clock"> & Partial<FileWatchOptions>) {
  const seen: Record<string, string>[] = [];
  const errors: string[] = [];
  const watch = new FileWatch({
    intervalMs: 1000,
    onChange: (changes) => {
      seen.push(textOf(changes.map(({ path, content }) => [path, content] as const)));
    },
    onError: (error, path) => errors.push(`${path}: ${String(error)}`),
    ...options,
  });
  return { watch, seen, errors };
}

function textOf(contents: Iterable<readonly [string, Uint8Array]>): Record<string, string> {
  return Object.fromEntries([...contents].map(([path, content]) => [path, Buffer.from(content).toString()]));
}

/** Files whose stamps are in the hands of the test. */
class MemoryFiles implements FileReader {
  reads = 0;
  onRead: () => void = () => undefined;
  readonly #clock: FakeClock;
  readonly #files = new Map<string, ReadFile>();
  #stamps = 0;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  write(path: string, content: string): void {
    const stamp = String(this.#stamps++);
    this.#files.set(path, { content: Buffer.from(content), stamp, modifiedAt: this.#clock.wallTime() });
  }

  writeKeepingStamp(path: string, content: string): void {
    const file = this.#files.get(path);
    assert.ok(file);
    this.#files.set(path, { ...file, content: Buffer.from(content) });
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  readIfNew(path: string, stamp: string | undefined): Promise<ReadFile | undefined> {
    this.onRead();
    const file = this.#files.get(path);
    if (file === undefined) return Promise.reject(new Error("ENOENT"));
    if (file.stamp === stamp) return Promise.resolve(undefined);
    this.reads++;
    return Promise.resolve(file);
  }
}
