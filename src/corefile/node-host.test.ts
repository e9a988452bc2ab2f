import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { canonicalDump } from "./canonical-dump.ts";
import { nodeHost } from "./node-host.ts";
import { parseCorefile } from "./parser.ts";

describe("nodeHost", () => {
  const directory = mkdtempSync(join(tmpdir(), "portolan-corefile-"));
  const at = (...parts: string[]): string => join(directory, ...parts);
  after(() => rmSync(directory, { recursive: true }));

  it("reads files, and says why others cannot be read", () => {
    writeFileSync(at("file"), "täxt\n");
    symlinkSync("file", at("link"));
    writeFileSync(at("large"), "");
    truncateSync(at("large"), 17 * 1024 * 1024);
    execFileSync("mkfifo", [at("pipe")]);
    assert.deepEqual(nodeHost.readFile(at("file")), { kind: "text", text: "täxt\n" });
    assert.deepEqual(nodeHost.readFile(at("link")), { kind: "text", text: "täxt\n" });
    assert.deepEqual(nodeHost.readFile(directory), { kind: "directory" });
    assert.deepEqual(nodeHost.readFile(at("missing")), { kind: "missing" });
    assert.deepEqual(nodeHost.readFile(at("file", "below")), { kind: "missing" });
    assert.deepEqual(nodeHost.readFile(at("large")), { kind: "unreadable", reason: "larger than 16 MiB" });
    assert.deepEqual(nodeHost.readFile(at("pipe")), { kind: "unreadable", reason: "not a regular file" });
    assert.equal(nodeHost.readFile(at("nul\0")).kind, "unreadable");
  });

  it("lists directories", () => {
    mkdirSync(at("listed"));
    for (const name of ["a", ".b"]) writeFileSync(at("listed", name), "");
    assert.deepEqual(nodeHost.list(at("listed"))?.toSorted(), [".b", "a"]);
    assert.equal(nodeHost.list(at("missing")), undefined);
    assert.equal(nodeHost.list(at("listed", "a")), undefined);
  });

  it("reads the environment, and nothing that objects inherit", () => {
    process.env.PORTOLAN_COREFILE_TEST = "value";
    after(() => delete process.env.PORTOLAN_COREFILE_TEST);
    assert.equal(nodeHost.environmentVariable("PORTOLAN_COREFILE_TEST"), "value");
    assert.equal(nodeHost.environmentVariable("PORTOLAN_COREFILE_TEST_UNSET"), undefined);
    assert.equal(nodeHost.environmentVariable("toString"), undefined);
  });

  it("serves a Corefile with imports, laid out as a mounted ConfigMap", () => {
    mkdirSync(at("mount", "..data"), { recursive: true });
    writeFileSync(at("mount", "..data", "Corefile"), ".:53 {\n    import *.override\n}\nimport *.server\n");
    writeFileSync(at("mount", "..data", "log.override"), "log\n");
    writeFileSync(at("mount", "..data", "stub.server"), "stub.local {\n    whoami\n}\n");
    for (const name of ["Corefile", "log.override", "stub.server"]) {
      symlinkSync(join("..data", name), at("mount", name));
    }
    const file = at("mount", "Corefile");
    const content = nodeHost.readFile(file);
    assert.ok(content.kind === "text");
    const { corefile, diagnostics } = parseCorefile(content.text, { file, host: nodeHost });
    assert.deepEqual(diagnostics, []);
    assert.equal(
      canonicalDump(corefile),
      '[{"keys":[".:53"],"directives":[["log"]]},{"keys":["stub.local"],"directives":[["whoami"]]}]',
    );
    assert.deepEqual(corefile.files, [file, at("mount", "log.override"), at("mount", "stub.server")]);
  });
});
