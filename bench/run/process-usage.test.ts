import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  cpuSeconds,
  parseBusyTicks,
  parseProcessTimes,
  parseResidentKibibytes,
  parseRunNanoseconds,
  residentMegabytes,
  threadSeconds,
} from "./process-usage.ts";

test("times are found behind a name with blanks and brackets", () => {
  const stat =
    "4711 (odd (name) 1 2) S 42 4711 4711 0 -1 4194304 900 0 0 0 120 30 7 5 20 0 11 0 100 200 300 0";
  assert.deepEqual(parseProcessTimes(stat), { parent: 42, ticks: 150, endedChildrenTicks: 12 });
  assert.throws(() => parseProcessTimes("1 (short) S 0"), RangeError);
});

test("resident memory is one line of status", () => {
  assert.equal(parseResidentKibibytes("Name:\tnode\nVmHWM:\t  9000 kB\nVmRSS:\t   81920 kB\n"), 81_920);
  assert.equal(parseResidentKibibytes("Name:\tgone\nState:\tZ (zombie)\n"), 0);
});

test("the time of a thread is the first of three numbers", () => {
  assert.equal(parseRunNanoseconds("1165639 182409 17\n"), 1_165_639);
});

test("busy time of the machine leaves out idle and waiting", () => {
  assert.equal(parseBusyTicks("cpu  10 1 20 5000 300 2 3 4 0 0\ncpu0 5 0 10 2500 150 1 1 2 0 0\n"), 40);
});

test("a process counts with its children", async () => {
  const script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done; read line";
  // The shell's child does the work: the shell itself only waits for it.
  const child = spawn("sh", ["-c", `sh -c '${script}'; true`], { stdio: ["pipe", "pipe", "inherit"] });
  try {
    await once(child.stdout, "data");
    const { pid } = child;
    assert.ok(pid !== undefined);
    const own = parseProcessTimes(readFileSync(`/proc/${pid}/stat`, "latin1"));
    assert.ok(cpuSeconds(pid, 1) > own.ticks + own.endedChildrenTicks);
    assert.ok(residentMegabytes(pid) > 0.5);
    assert.ok(threadSeconds(pid) > 0.01);
  } finally {
    child.stdin.end();
    await once(child, "close");
  }
});
