import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProgramPages, unchangedMappings } from "./program-pages.ts";
import { residentMemory } from "./resident-memory.ts";

test("mappings of files that may be read only, and of which nothing was written to", () => {
  const found = [...unchangedMappings(SMAPS)].map(
    ({ start, octets }) => `${start.toString(16)} ${octets.toString(16)}`,
  );
  assert.deepEqual(found, ["400000 346000", "74a000 28fa000", "7f32822b000 1000"]);
});

test("pages of the program are given back, and the program goes on", async (context) => {
  const release = await loadProgramPages();
  if (release === undefined) {
    context.skip("no madvise here");
    return;
  }
  const before = residentMemory().files;
  assert.ok(before > 20e6, `${before}`);
  await release();
  assert.ok(residentMemory().files < before - 10e6, `${residentMemory().files} of ${before}`);
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
