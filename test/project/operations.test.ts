/** docs/operations.md: its figures are those of the benchmark, and its commands can be typed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fencedBlocks, sections } from "../../scripts/lib/markdown.ts";
import { projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const read = (path: string): string => readFileSync(join(projectRoot, path), "utf8");
const page = read("docs/operations.md");

/** The cells of the rows of a table, without its head. */
function rowsUnder(heading: string): string[][] {
  const lines = page.split("\n");
  const head = lines.findIndex((line) => line.startsWith(`| ${heading} |`));
  assert.ok(head !== -1, heading);
  const length = lines.slice(head).findIndex((line) => !line.startsWith("|"));
  return lines.slice(head + 2, head + length).map((line) => line.slice(2, -2).split(" | "));
}

test("the figures of CPU are those of the benchmark's last run", () => {
  const results = read("bench/RESULTS.md");
  const rates = Array.from(
    results.matchAll(/^\| portolan \| ([\d,]+) \| ([\d.]+) \|/gm),
    ([, rate = "", cpu = ""]) => ({
      rate,
      cpu: Number(cpu),
    }),
  );
  const rows = rowsUnder("load");
  assert.ok(rows.length >= 8);
  for (const [load = "", rate = "", cpu = ""] of rows) {
    const measured = rates.find((each) => each.rate === rate);
    assert.ok(measured !== undefined, `${load}: ${rate} queries/s`);
    const digits = cpu.split(".")[1]?.length ?? 0;
    assert.equal(Number(measured.cpu.toFixed(digits)), Number(cpu), load);
  }
  assert.match(results, /^\| CPU a query in peace, µs \| 29\.75 /m);
  assert.match(results, /^\| 7,830 at 200\/s, one by one \| 150 /m);
});

test("the figures of memory are those of the benchmark's last run", () => {
  const results = read("bench/RESULTS.md");
  const measured = [
    ...Array.from(
      results.matchAll(/At rest (\d+) MB, at most (\d+) MB/g),
      ([, rest, most]) => `${rest} ${most}`,
    ),
    ...Array.from(results.matchAll(/^`multisocket \d`: (\d+) MB before/gm), ([, rest]) => `${rest} `),
  ];
  const [, , podsAtRest = ""] = /^\| resident at rest, MB \|(.*)\|$/m.exec(results)?.[1]?.split("|") ?? [];
  const peak = /^\| peak while all is listed again, MB \|(.*)\|$/m.exec(results)?.[1]?.split("|")[2] ?? "";
  measured.push(`${podsAtRest.trim()} ${peak.trim()}`);
  for (const [cluster = "", rest = "", most = ""] of rowsUnder("cluster"))
    assert.ok(
      measured.some(
        (each) => each === `${rest} ${most}` || (each === `${rest} ` && results.includes(`| ${most} |`)),
      ),
      `${cluster}: ${rest}, ${most}`,
    );
});

test("the table of artefacts is there, with a figure in each cell", () => {
  const rows = rowsUnder("artefact");
  assert.equal(rows.length, 4);
  for (const [name = "", ...figures] of rows)
    for (const figure of figures) assert.ok(Number(figure) > 0, `${name}: ${figure}`);
});

test("the commands can be parsed by a shell, and name what the manifests have", async () => {
  for (const { language, text } of fencedBlocks(page)) {
    if (language !== "sh") continue;
    const { code, errors } = await run("bash", ["-n", "-c", text]);
    assert.equal(code, 0, errors);
  }
  assert.match(read("deploy/kubernetes/deployment.yaml"), /^ {8}- name: portolan$/m);
});

test("each question of a careful operator has a section", () => {
  const titles = sections(page, 2).map(({ title }) => title);
  for (const title of [
    "Sizing",
    "Artefacts",
    "Limits",
    "Upgrade",
    "Rollback",
    "Canary",
    "When it crashes",
    "Kubernetes versions",
  ])
    assert.ok(titles.includes(title), title);
});
