/** `portolan doctor` with a capture that is larger than the memory it may take. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import { runPortolan } from "../support/portolan.ts";

const ROWS = 150_000;
/** Mebibytes of heap: the queries alone would take twice as much. */
const HEAP = 48;

function captureText(): string {
  const lines: string[] = [];
  for (let n = 0; n < ROWS; n++) {
    const isMeant = n % 4 === 0;
    lines.push(
      JSON.stringify({
        ...{ time: 1.7e12 + n, name: isMeant ? "redsi.data.svc.cluster.local." : `n${n}.victim.example.` },
        ...{ type: "A", rcode: "NXDOMAIN", client: "10.1.0.1", workload: "batch/nightly-0", duration: 0.1 },
        ...{ plugin: "cache", transport: "udp", port: n & 0xffff, id: n & 0xffff, listener: "dns://:53" },
        ...{ answers: 0, size: 100, weight: 1 },
      }),
    );
  }
  return `${lines.join("\n")}\n`;
}

describe("a capture that is larger than the heap", () => {
  const text = captureText();
  const env = { NODE_OPTIONS: `--max-old-space-size=${HEAP}` };
  for (const way of ["a file", "standard input"]) {
    test(`is judged, from ${way}`, async (t) => {
      const file = join(makeTree(t, {}), "capture");
      if (way === "a file") writeFileSync(file, text);
      const { code, output, errors } = await runPortolan(
        ["doctor", "-format", "json", way === "a file" ? file : "-"],
        { env, ...(way !== "a file" && { input: text }) },
      );
      assert.deepEqual([errors, code], ["", 1]);
      const { findings, observed }: Diagnosis = JSON.parse(output);
      assert.deepEqual([observed.queries, observed.rows], [ROWS, ROWS]);
      const [finding] = findings;
      assert.deepEqual([finding?.code, finding?.figures.names], ["absent-names", 1]);
      assert.ok(Math.abs((finding?.figures.absent ?? 0) - ROWS / 4) < 10, JSON.stringify(finding?.figures));
    });
  }

  test("is not written over by a record of itself", async (t) => {
    const folder = makeTree(t, { capture: text.slice(0, text.indexOf("\n") + 1) });
    const { code, errors } = await runPortolan(["doctor", "capture", "-record", "./capture"], {
      cwd: folder,
    });
    assert.deepEqual([code, errors], [2, "-record ./capture: that is the capture being read\n"]);
  });
});
