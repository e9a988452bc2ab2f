import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FlagError } from "../flag-table.ts";
import { Questions, questionText, readQuestions } from "./questions.ts";

async function read(text: string): Promise<Questions> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-questions-"));
  try {
    const file = join(folder, "queries");
    writeFileSync(file, text);
    const questions = new Questions();
    await readQuestions(file, questions);
    return questions;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function shown(questions: Questions): string[] {
  return questions.all.map((question) => `${questionText(question)} x${question.times}`);
}

test("lines of NAME TYPE are read, each question once, and comments are not", async () => {
  const questions = await read(
    "# dnsperf\n\nweb.example A\nWEB.example. a\n; x\nweb.example AAAA\nx.example TYPE65\n",
  );
  assert.deepEqual(shown(questions), ["web.example. A x2", "web.example. AAAA x1", "x.example. HTTPS x1"]);
});

test("a query log of CoreDNS is read, in text and in JSON, and its other lines are counted", async () => {
  const logged = (type: string, name: string): string =>
    `[INFO] 10.244.1.5:40212 - 7 \\"${type} ${name} udp 45 false 512\\" NOERROR qr,aa,rd 86 0.000301s`;
  const questions = await read(
    [
      ".:53",
      "CoreDNS-1.12.0",
      logged("A IN", "web.shop.svc.cluster.local.").replaceAll("\\", ""),
      `2026-11-28T20:00:00Z ${logged("AAAA IN", "web.shop.svc.cluster.local.").replaceAll("\\", "")}`,
      `{"level":"info","msg":"${logged("A IN", "json.example.")}"}`,
      logged("TXT CH", "version.bind.").replaceAll("\\", ""),
      logged("AXFR IN", "example.").replaceAll("\\", ""),
      "[ERROR] plugin/errors: 2 web.example. A: read udp: i/o timeout",
    ].join("\n"),
  );
  assert.deepEqual(shown(questions), [
    "web.shop.svc.cluster.local. A x1",
    "web.shop.svc.cluster.local. AAAA x1",
    "json.example. A x1",
  ]);
  assert.deepEqual([questions.leftOut, questions.otherLines], [2, 3]);
});

test("a capture of tail -json is read with its weights", async () => {
  const row = {
    time: 1,
    name: "web.example.",
    type: "A",
    rcode: "NOERROR",
    client: "10.0.0.1",
    duration: 0.1,
    plugin: "cache",
    transport: "udp",
    port: 1,
    id: 1,
    listener: "dns://.:53",
    answers: 1,
    size: 50,
    weight: 4,
  };
  assert.deepEqual(shown(await read(`${JSON.stringify(row)}\n${JSON.stringify(row)}\n`)), [
    "web.example. A x8",
  ]);
});

for (const [title, text, message] of [
  ["an unknown type", "a.example A\nb.example FOO\n", /queries:2: "b\.example FOO" is not a question/],
  ["three words", "a b c\n", /queries:1: "a b c" is not a question/],
  ["an empty label", "a..b A\n", /queries:1: "a\.\.b A" is not a question/],
] as const)
  test(`${title} is refused with its line`, async () => {
    await assert.rejects(read(text), (error) => error instanceof FlagError && message.test(error.message));
  });
