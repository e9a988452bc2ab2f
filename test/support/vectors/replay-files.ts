/** Makes a test of each set of a folder of vectors. */
import assert from "node:assert/strict";
import { globSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { basename } from "node:path";
import { suite, test } from "node:test";
import { projectRoot } from "../portolan.ts";
import { unsaidReasons } from "./listed-differences.ts";
import { replay } from "./replay.ts";
import { readDifferences, readVectorSets, type VectorSet } from "./vector-set.ts";

/** Sets do not meet, so several run at one time; most of them wait for sockets. */
const TOGETHER = 4;

/**
 * @param folder below `test/fixtures/vectors/`
 * @param files of it, without `.jsonl`
 */
export function replayFiles(folder: string, files: readonly string[]): void {
  const differences = new Map<string, string>();
  for (const path of globSync(`test/fixtures/vectors/${folder}/differences/*.json`, { cwd: projectRoot })) {
    const file = basename(path);
    const own = readDifferences(`${folder}/differences/${file}`);
    for (const [id, reason] of own) differences.set(id, reason);
    test(`docs/compatibility.md says why ${folder}/${file} differs`, () => {
      assert.deepEqual(unsaidReasons(own.values()), []);
    });
  }

  suite(folder, { concurrency: TOGETHER }, () => {
    const sets = files.flatMap((file) => readVectorSets(`${folder}/${file}.jsonl`));
    const byReason = Map.groupBy(sets, whyNot);
    for (const [reason, unready] of byReason) {
      if (reason !== undefined) test(`${unready.length} sets`, { skip: reason }, () => undefined);
    }
    for (const set of byReason.get(undefined) ?? []) test(set.id, () => compare(set, differences));
  });
}

/** Why a set cannot run here. */
function whyNot(set: VectorSet): string | undefined {
  if (set.corefile.includes("::1") && !hasIpv6) return "this machine has no IPv6";
  return undefined;
}

const hasIpv6 = Object.values(networkInterfaces()).some((addresses) =>
  addresses?.some(({ address }) => address === "::1"),
);

async function compare(set: VectorSet, differences: ReadonlyMap<string, string>): Promise<void> {
  const deviations = await replay(set);
  const differs = new Set(deviations.map((deviation) => deviation.case));
  const listed = [...differences.keys()].filter((id) => id === set.id || id.startsWith(`${set.id} `));
  const unexpected = deviations.filter(({ case: id }) => !differences.has(id) && !differences.has(set.id));
  assert.deepEqual(
    unexpected.map(({ case: id, question, actual }) => ({ case: id, question, reply: actual })),
    unexpected.map(({ case: id, question, expected }) => ({ case: id, question, reply: expected })),
    `differs: ${unexpected.map((deviation) => deviation.case).join(", ")}`,
  );
  const needless = listed.filter((id) => (id === set.id ? differs.size === 0 : !differs.has(id)));
  assert.deepEqual(needless, [], "listed as different, and is not");
}
