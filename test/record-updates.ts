/**
 * Records CoreDNS's answers to the updates of the tests: node test/record-updates.ts COREDNS, the path of the
 * program. Not part of `npm test`.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeTree } from "../scripts/lib/test-tree.ts";
import { waitForServer } from "./support/dns-client.ts";
import { freePort } from "./support/free-ports.ts";
import { Program } from "./support/program.ts";
import { corefileOf, outcomeOf, seedsOf, zoneOfRow } from "./support/update-messages.ts";
import { UPDATE_ROWS } from "./support/update-rows.ts";

/** Milliseconds after which CoreDNS is taken to say nothing. */
const PATIENCE = 1_000;

const [, , coredns = "coredns"] = process.argv;
const folder = mkdtempSync(join(tmpdir(), "portolan-record-"));
try {
  const port = await freePort();
  writeTree(folder, { ...seedsOf(UPDATE_ROWS), Corefile: corefileOf(UPDATE_ROWS, port) });
  await using program = new Program(coredns, ["-conf", "Corefile"], { cwd: folder });
  const server = { address: "127.0.0.1", port };
  if (!(await waitForServer(server, () => program.hasEnded))) throw new Error(program.describe());
  const lines: string[] = [];
  for (const [index, row] of UPDATE_ROWS.entries()) {
    const outcome = await outcomeOf(server, row, zoneOfRow(index), PATIENCE).catch((error: unknown) => {
      throw new Error(row.title, { cause: error });
    });
    lines.push(JSON.stringify({ title: row.title, ...outcome }));
  }
  const path = join(import.meta.dirname, "fixtures", "vectors", "updates", "dynupdate.jsonl");
  writeFileSync(path, `${lines.join("\n")}\n`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
