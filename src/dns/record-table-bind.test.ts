import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { before, describe, it } from "node:test";
import { type RecordExample, recordExamples } from "./fixtures/record-examples.ts";
import { toHex } from "./octets.ts";

/** Reads one record as "class type rdata" and prints it; `-u` in the form of RFC 3597. Debian has it in the package bind9. */
const TOOL = "named-rrchecker";
const skip = spawnSync(TOOL, ["-T"]).error === undefined ? false : `not installed: ${TOOL}`;

/** Types that BIND reads only in the form of RFC 3597, and those that no zone may contain. */
const TEXTLESS: ReadonlySet<string> = new Set(["UID", "GID", "TKEY", "TSIG"]);

/** Simultaneous processes. */
const WORKERS = 3;

/** RDATA in hexadecimal as from BIND, or BIND's error. */
async function ask(record: string): Promise<string> {
  const child = spawn(TOOL, ["-u"], { stdio: ["pipe", "pipe", "pipe"] });
  let output = "";
  let complaint = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (output += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (complaint += chunk));
  child.stdin.end(`${record}\n`);
  await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
  const [, octets] = /\\# \d+ ?(.*)/.exec(output) ?? [];
  return octets === undefined ? complaint.trim() : octets.replaceAll(" ", "").toLowerCase();
}

describe("BIND reads the same octets from text", { skip }, () => {
  const supported = new Set<string>();
  const answers = new Map<string, string>();

  before(async () => {
    for (const type of spawnSync(TOOL, ["-T"], { encoding: "utf8" }).stdout.split("\n")) supported.add(type);
    const queue = recordExamples.flatMap(({ type, text, printed }) =>
      text === printed ? [`IN ${type} ${text}`] : [`IN ${type} ${text}`, `IN ${type} ${printed}`],
    );
    const work = async () => {
      for (let record = queue.pop(); record !== undefined; record = queue.pop())
        answers.set(record, await ask(record));
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
  });

  for (const example of recordExamples) {
    if (TEXTLESS.has(example.type)) continue;
    it(`${example.type} ${example.text}`, (t) => {
      if (!supported.has(example.type)) {
        t.skip(`this BIND does not know ${example.type}`);
        return;
      }
      assertSame(example, example.text);
      assertSame(example, example.printed);
    });
  }

  function assertSame({ type, octets }: RecordExample, text: string): void {
    assert.equal(answers.get(`IN ${type} ${text}`), toHex(octets));
  }
});
