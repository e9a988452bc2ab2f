import assert from "node:assert/strict";
import { test } from "node:test";
import { heapArguments } from "../bin/heap-arguments.mjs";

const MEBIBYTE = 2 ** 20;
const POD = { memory: 170 * MEBIBYTE, given: [""] };
const ROOM = ["--max-semi-space-size=2"];

test("who serves with little memory gets a young generation as large as elsewhere", () => {
  for (const argv of [[], ["-conf", "Corefile"], ["node-cache", "-localip", "169.254.20.10"], ["kube-dns"]])
    assert.deepEqual(heapArguments(argv, POD), ROOM);
  assert.deepEqual(heapArguments([], { ...POD, memory: 512 * MEBIBYTE }), ROOM);
});

test("the arguments stay as they are with enough memory, for commands, and where the user set them", () => {
  assert.deepEqual(heapArguments([], { ...POD, memory: 513 * MEBIBYTE }), []);
  for (const argv of [["check"], ["sidecar"]]) assert.deepEqual(heapArguments(argv, POD), []);
  for (const option of ["--max-semi-space-size=4", "--max_semi_space_size=1", "--min-semi-space-size=8"])
    assert.deepEqual(heapArguments([], { ...POD, given: ["--inspect", `--no-warnings ${option}`] }), []);
  assert.deepEqual(heapArguments([], { ...POD, given: ["--max-old-space-size=96"] }), ROOM);
});
