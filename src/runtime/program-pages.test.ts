import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { loadMemoryAdvice } from "./memory-release.ts";
import {
  loadProgramPages,
  readLastingMappings,
  releaseInTurns,
  releaseUnchanged,
  unchangedMappings,
} from "./program-pages.ts";
import { residentMemory } from "./resident-memory.ts";

test("mappings of files that may be read only, and of which nothing was written to", () => {
  const found = [...unchangedMappings(SMAPS)].map(
    ({ start, octets, path }) => `${start.toString(16)} ${octets.toString(16)} ${path}`,
  );
  assert.deepEqual(found, [
    "400000 346000 /usr/bin/node",
    "74a000 28fa000 /usr/bin/node",
    "7f32822b000 1000 /opt/addon.node (deleted)",
  ]);
});

test("pages of the program are given back, and the program goes on", async (context) => {
  if (process.platform !== "linux") {
    context.skip("no /proc here");
    return;
  }
  const release = await loadProgramPages(await readLastingMappings());
  if (release === undefined) {
    context.skip("no madvise here");
    return;
  }
  const before = residentMemory().files;
  assert.ok(before > 20e6, `${before}`);
  await release();
  assert.ok(residentMemory().files < before - 10e6, `${residentMemory().files} of ${before}`);
});

test("no turn gives back more than 2 MiB of the program: the next one has to fault in what is in use", async () => {
  const turns = [0n];
  const given: [start: bigint, octets: bigint][] = [];
  let isOver = false;
  const count = (): void => {
    turns.push(0n);
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const mappings = [
    { start: 0x40_0000n, octets: 0x1000n, path: "/usr/bin/node" },
    { start: 0x80_0000n, octets: 0x28f_a000n, path: "/usr/bin/node" },
    { start: 0x7e00_0000n, octets: 0x30_0000n, path: "/opt/addon.node" },
  ];
  await releaseInTurns(mappings, (start, octets) => {
    given.push([start, octets]);
    turns[turns.length - 1] = (turns.at(-1) ?? 0n) + octets;
    return 0;
  });
  isOver = true;
  assert.ok(
    turns.every((octets) => octets <= 0x20_0000n),
    `${turns}`,
  );
  for (const { start, octets } of mappings) {
    // Without a gap, and nothing twice.
    const parts = given.filter(([from]) => from >= start && from < start + octets);
    let next = start;
    for (const [from, length] of parts) {
      assert.equal(from, next);
      next += length;
    }
    assert.equal(next, start + octets);
  }
});

test("nothing is given back that goes when a thread ends: something else may lie there by then", async (context) => {
  if ((await loadMemoryAdvice()) === undefined) {
    context.skip("no madvise here");
    return;
  }
  const lasting = await readLastingMappings();
  const given: [start: bigint, end: bigint][] = [];
  // Its code is a part of the program, mapped for it alone.
  const thread = new Worker("require('node:worker_threads').parentPort.on('message', () => {})", {
    eval: true,
  });
  await once(thread, "online");
  await releaseUnchanged(lasting, (start, octets) => {
    given.push([start, start + octets]);
    return 0;
  });
  await thread.terminate();
  const left = readFileSync("/proc/self/maps", "latin1").split("\n");
  const files = left.flatMap((line) => {
    const [, from, to] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p .*\//.exec(line) ?? [];
    return from === undefined ? [] : [{ from: BigInt(`0x${from}`), to: BigInt(`0x${to}`) }];
  });
  assert.ok(given.length > 0);
  for (const [start, end] of given)
    assert.ok(
      files.some(({ from, to }) => start >= from && end <= to),
      `${start.toString(16)} to ${end.toString(16)} is no file any more`,
    );
});

/** Of a running node, shortened: its code, what the linker protected, the code of a library with a break point, and what is no file. */
const SMAPS = `00400000-00746000 r--p 00000000 fe:00 5424368                            /usr/bin/node
Size:               3352 kB
Rss:                3352 kB
Anonymous:             0 kB
KSM:                   0 kB
VmFlags: rd mr mw me sd
0074a000-03044000 r-xp 0034a000 fe:00 5424368                            /usr/bin/node
Rss:               29624 kB
Private_Clean:     29624 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
06b52000-06b56000 r--p 06751000 fe:00 5424368                            /usr/bin/node
Rss:                  16 kB
Anonymous:            16 kB
VmFlags: rd mr mw me ac sd
06b56000-06b7d000 rw-p 06755000 fe:00 5424368                            /usr/bin/node
Rss:                 156 kB
Anonymous:             0 kB
VmFlags: rd wr mr mw me ac sd
7f3263dc0000-7f3263fc5000 r-xp 00000000 00:00 0
Rss:                2048 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me sd
7f3282b44000-7f3282c9a000 r-xp 00026000 fe:00 326269                     /usr/lib/my libs/libc.so.6
Rss:                1240 kB
Anonymous:             4 kB
VmFlags: rd ex mr mw me sd
7f32822b000-7f32822c000 r--s 00000000 fe:00 326270                       /run/shared
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr me ms sd
7f32822b000-7f32822c000 r--p 00000000 fe:00 326271                       /opt/addon.node (deleted)
Rss:                   4 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
7fff8d3f0000-7fff8d3f2000 r-xp 00000000 00:00 0                          [vdso]
Rss:                   8 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me de sd
`;
