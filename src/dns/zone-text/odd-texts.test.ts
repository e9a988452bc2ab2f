import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { Name } from "../name.ts";
import { formatRecord } from "../resource-record.ts";
import { RecordType } from "../type-names.ts";
import { formatZoneTextFault } from "./fault.ts";
import { parseZoneText } from "./read.ts";

interface OddText {
  readonly text: string;
  readonly records: readonly string[];
  /** Place and reason of a refused text. */
  readonly fault: string | undefined;
  /** Programs that agree. */
  readonly alike: readonly string[];
}

const origin = Name.parse("example.org.");
const oddTexts: readonly OddText[] = readOddTexts();

/** The head of the file describes its format. */
function readOddTexts(): OddText[] {
  const file = readFileSync(join(import.meta.dirname, "..", "fixtures", "odd-texts.txt"), "utf8");
  const blocks = file.replace(/^#.*\n/gm, "").matchAll(/^\S.*\n(?: .*\n)+/gm);
  return Array.from(blocks, ([block]) => {
    const [text = "", ...facts] = block.trimEnd().split("\n");
    const behind = (mark: string): string[] =>
      facts.filter((fact) => fact.startsWith(`  ${mark} `)).map((fact) => fact.slice(4));
    return {
      text,
      records: behind("="),
      fault: behind("!")[0],
      alike: behind("~").flatMap((names) => names.split(" ")),
    };
  });
}

suite("odd texts are read or refused as recorded", () => {
  for (const { text, records, fault } of oddTexts) {
    test(text, () => {
      const read = parseZoneText(`$TTL 60\n${text}\n`, { origin, file: "db" });
      const printed = read.records.map((record) => formatRecord(record).replaceAll("\t", " "));
      const refused = read.faults.map(formatZoneTextFault);
      assert.deepEqual(printed, records);
      assert.deepEqual(refused, fault === undefined ? [] : [fault.replace(/^1:/, "db:2:")]);
    });
  }
});

/** Debian has it in the package bind9-utils. */
const TOOL = "named-checkzone";
const skip = spawnSync(TOOL, ["-v"]).error === undefined ? false : `not installed: ${TOOL}`;
const HEAD = "$TTL 60\n@ SOA ns hm 1 2 3 4 5\n@ NS ns\nns A 192.0.2.250\n";

suite("BIND agrees on the texts that name it", { skip }, () => {
  let folder = "";
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "portolan-odd-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const { text, records, alike } of oddTexts) {
    if (!alike.includes("BIND")) continue;
    test(text, () => {
      const file = join(folder, "zone");
      writeFileSync(file, `${HEAD}${text}\n`);
      const args = ["-q", "-D", "-i", "none", "-k", "ignore", "example.org", file];
      const { stdout, status } = spawnSync(TOOL, args, { encoding: "utf8" });
      assert.equal(status, 0);
      // Printed again by our code, because white space and the units of LOC may differ.
      const printed = parseZoneText(stdout, { origin })
        .records.filter(
          ({ name, type }) =>
            type !== RecordType.SOA && type !== RecordType.NS && `${name}` !== "ns.example.org.",
        )
        .map((record) => formatRecord(record).replaceAll("\t", " "));
      assert.deepEqual(printed, records);
    });
  }
});
