import assert from "node:assert/strict";
import { test } from "node:test";
import { formatOctetCount, parseOctetCount } from "./octet-count.ts";

for (const [text, octets] of [
  ["0", 0],
  ["4096", 4096],
  ["4096B", 4096],
  ["1k", 1000],
  ["1Ki", 1024],
  ["1KiB", 1024],
  ["64Mi", 67_108_864],
  ["64mib", 67_108_864],
  ["64MB", 64_000_000],
  ["2G", 2_000_000_000],
  ["2GiB", 2_147_483_648],
] as const) {
  test(`${text} is ${octets} octets`, () => assert.equal(parseOctetCount(text), octets));
}

for (const text of [
  "",
  "Mi",
  "-1",
  "1.5Mi",
  "1 Mi",
  "1i",
  "1Ti",
  "64MiBs",
  "9007199254740993",
  "99999999999Gi",
]) {
  test(`${JSON.stringify(text)} is no amount of memory`, () =>
    assert.equal(parseOctetCount(text), undefined));
}

for (const [octets, text] of [
  [0, "0"],
  [1000, "1000"],
  [1025, "2Ki"],
  [1_048_576, "1Mi"],
  [1_048_577, "1025Ki"],
  [3 * 1024 ** 3, "3Gi"],
] as const) {
  test(`${octets} octets are written as ${text}`, () => {
    assert.equal(formatOctetCount(octets), text);
    assert.ok((parseOctetCount(text) ?? -1) >= octets);
  });
}
