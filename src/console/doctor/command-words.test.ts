import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { nameWord, shellWord } from "./command-words.ts";

test("a shell takes whatever it is for one word, and runs nothing in it", () => {
  const words = [
    "web.shop.svc.cluster.local.",
    "$(touch x).example.",
    "`id`|x&y;z.example.",
    'it\'s "quoted" \\032 <a>',
    "*?[a]{b,c}~#!",
    "",
    "a\nb",
  ];
  const script = `printf '%s\\0' ${words.map(shellWord).join(" ")}`;
  assert.deepEqual(execFileSync("sh", ["-c", script]).toString().split("\0").slice(0, -1), words);
});

test("a usual name stands as it is, and one with a hyphen in front is no flag", () => {
  assert.equal(nameWord("a-b.example.org."), "a-b.example.org.");
  assert.equal(nameWord("-conf.example.org."), "'\\045conf.example.org.'");
});
