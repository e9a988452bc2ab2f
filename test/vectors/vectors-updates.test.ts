/**
 * Updates, and what CoreDNS 1.15.0 said to them and made of the zone (`node test/record-updates.ts COREDNS` records it). `differences.json` says where this server does
 * otherwise, and why.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { Portolan } from "../support/portolan.ts";
import { corefileOf, outcomeOf, seedsOf, type UpdateOutcome, zoneOfRow } from "../support/update-messages.ts";
import { UPDATE_ROWS } from "../support/update-rows.ts";
import { unsaidReasons } from "../support/vectors/listed-differences.ts";

interface Difference extends Partial<UpdateOutcome> {
  readonly title: string;
  readonly reason: string;
}

const FOLDER = join(import.meta.dirname, "..", "fixtures", "vectors", "updates");

function recorded(): Map<string, UpdateOutcome> {
  const lines = readFileSync(join(FOLDER, "dynupdate.jsonl"), "utf8").trim().split("\n");
  return new Map(
    lines.map((line) => {
      const { title, ...outcome }: UpdateOutcome & { title: string } = JSON.parse(line);
      return [title, outcome];
    }),
  );
}

const differences: readonly Difference[] = JSON.parse(readFileSync(join(FOLDER, "differences.json"), "utf8"));

suite("updates as CoreDNS takes them", () => {
  test("each of them is recorded, under a title of its own", () => {
    const titles = UPDATE_ROWS.map(({ title }) => title);
    assert.deepEqual([...recorded().keys()], titles);
    assert.ok(new Set(titles).size >= 200);
  });

  test("rcodes and zones are those of CoreDNS, or differ for a reason", async () => {
    await using server = await Portolan.start((port) => corefileOf(UPDATE_ROWS, port("dns")), {
      files: seedsOf(UPDATE_ROWS),
    });
    const vectors = recorded();
    const seen: unknown[] = [];
    const expected: unknown[] = [];
    for (const [index, row] of UPDATE_ROWS.entries()) {
      const { title } = row;
      const { reason: _reason, ...other } = differences.find((difference) => difference.title === title) ?? {
        reason: "",
      };
      seen.push({ title, ...(await outcomeOf(server, row, zoneOfRow(index))) });
      expected.push({ title, ...vectors.get(title), ...other });
    }
    assert.deepEqual(seen, expected);
  });

  test("each difference is one, and its reason stands on the page of differences", () => {
    const vectors = recorded();
    for (const { title, reason: _reason, ...other } of differences)
      assert.notDeepEqual({ ...vectors.get(title), ...other }, vectors.get(title), title);
    assert.deepEqual(unsaidReasons(differences.map(({ reason }) => reason)), []);
  });
});
