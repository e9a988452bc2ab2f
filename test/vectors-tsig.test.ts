/**
 * Signed queries, and what CoreDNS 1.14.7 answered to them. The format is that of `fixtures/vectors/zones`; where this server differs on
 * purpose, `differences/tsig.json` names the reason.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { writeTree } from "../scripts/lib/test-tree.ts";
import { createServer } from "../src/index.ts";
import { namedPorts } from "./support/free-ports.ts";
import { unsaidReasons } from "./support/vectors/listed-differences.ts";
import { readDifferences, readLines } from "./support/vectors/vector-set.ts";
import { askCase, type RecordedCase, recordedReply } from "./support/vectors/zone-case.ts";

interface TsigSet {
  readonly id: string;
  readonly corefile: string;
  readonly files: Readonly<Record<string, string>>;
  readonly cases: readonly RecordedCase[];
}

const differences = readDifferences("zones/differences/tsig.json");

test("docs/compatibility.md says why TSIG differs", () => {
  assert.deepEqual(unsaidReasons(differences.values()), []);
});

suite("tsig, recorded from CoreDNS", { concurrency: 4 }, () => {
  for (const set of readLines<TsigSet>("zones/tsig.jsonl")) test(set.id, () => replay(set));
});

async function replay(set: TsigSet): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-tsig-"));
  try {
    const portOf = await namedPorts();
    writeTree(folder, set.files);
    const corefile = set.corefile
      .replaceAll(/\{\{(port\d?)\}\}/g, (_all, name: string) => String(portOf(name)))
      .replaceAll("{{dir}}", folder);
    await using server = await createServer({ corefile });
    await server.start();
    const deviations: unknown[] = [];
    const differs = new Set<string>();
    for (const [index, asked] of set.cases.entries()) {
      const id = `${set.id} ${index + 1}`;
      const expected = recordedReply(asked);
      const now = Math.floor(Date.now() / 1000);
      const actual = await askCase(portOf("port"), asked, now, expected === undefined ? 300 : undefined);
      // Of a long message the vectors have the ends alone.
      if (asked.messages?.[0]?.answer === undefined && asked.messages !== undefined) {
        assert.deepEqual(actual?.signature, expected?.signature, id);
        continue;
      }
      try {
        assert.deepEqual(actual, expected);
      } catch {
        differs.add(id);
        if (!differences.has(id)) deviations.push({ id, actual, expected });
      }
    }
    assert.deepEqual(deviations, []);
    const listed = [...differences.keys()].filter((id) => id.startsWith(`${set.id} `));
    assert.deepEqual(
      listed.filter((id) => !differs.has(id)),
      [],
      "listed as different, and is not",
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
