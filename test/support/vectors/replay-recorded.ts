/** Makes tests of sets in the format in which `zones/` was recorded, with signatures and keys. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { writeTree } from "../../../scripts/lib/test-tree.ts";
import { createServer } from "../../../src/index.ts";
import { namedPorts } from "../free-ports.ts";
import { unsaidReasons } from "./listed-differences.ts";
import { readDifferences, readLines } from "./vector-set.ts";
import { askCase, type ComparableReply, type RecordedCase, recordedReply } from "./zone-case.ts";

export interface RecordedSet {
  readonly id: string;
  readonly corefile: string;
  readonly files: Readonly<Record<string, string>>;
  readonly cases: readonly RecordedCase[];
}

/** Makes a reply comparable that says something else at each moment. */
export type Normaliser = (reply: ComparableReply | undefined) => ComparableReply | undefined;

/** @param plugin names both `zones/<plugin>.jsonl` and the file of differences */
export function replayRecorded(plugin: string, normal: Normaliser = (reply) => reply): void {
  const differences = readDifferences(`zones/differences/${plugin}.json`);
  test(`docs/compatibility.md says why ${plugin} differs`, () => {
    assert.deepEqual(unsaidReasons(differences.values()), []);
  });
  suite(`${plugin}, recorded from CoreDNS`, { concurrency: 4 }, () => {
    for (const set of readLines<RecordedSet>(`zones/${plugin}.jsonl`))
      test(set.id, () => replay(set, differences, normal));
  });
}

async function replay(
  set: RecordedSet,
  differences: ReadonlyMap<string, string>,
  normal: Normaliser,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-recorded-"));
  try {
    const portOf = await namedPorts();
    writeTree(folder, set.files);
    const corefile = set.corefile
      .replaceAll(/\{\{(port\d?)\}\}/g, (_all, name: string) => String(portOf(name)))
      .replaceAll("{{dir}}", folder)
      .replace(/(key file )(?=K)/, corefileIsIn(folder, set.corefile));
    await using server = await createServer({ corefile });
    await server.start();
    const deviations: unknown[] = [];
    const differs = new Set<string>();
    for (const [index, asked] of set.cases.entries()) {
      const id = `${set.id} ${index + 1}`;
      const expected = normal(recordedReply(asked));
      const now = Math.floor(Date.now() / 1000);
      const patience = expected === undefined ? 300 : undefined;
      const actual = normal(await askCase(portOf("port"), asked, now, patience));
      // Of a long message the vectors have the ends alone.
      if (asked.messages !== undefined && asked.messages[0]?.answer === undefined) {
        assert.deepEqual(actual?.signature, expected?.signature, id);
        continue;
      }
      if (isDeepStrictEqual(actual, expected)) continue;
      differs.add(id);
      if (!differences.has(id)) deviations.push({ id, actual, expected });
    }
    assert.deepEqual(deviations, []);
    const listed = [...differences.keys()].filter((id) => id.startsWith(`${set.id} `));
    const needless = listed.filter((id) => !differs.has(id));
    assert.deepEqual(needless, [], "listed as different, and is not");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The recording ran in the folder of its files; tests run in that of the project. */
function corefileIsIn(folder: string, corefile: string): string {
  return /^\s*root /m.test(corefile) ? "$1" : `$1${folder}/`;
}
