/** `portolan doctor` on what a kernel counts: queries lost in full buffers, and packets lost to a race of tracked connections. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import type { Finding } from "../../src/console/doctor/finding.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { portolanWords } from "../support/portolan.ts";
import { Program } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

/** Two queries at once from one address, as a C library sends A and AAAA: all are given one port, and the first has it. */
const RACE = `const { createSocket } = require("node:dgram");
for (let count = 0; count < 4; count++) {
  const socket = createSocket("udp4");
  socket.send("query", 9999, "127.0.0.1", () => socket.close());
}`;

/** Replies, which the server takes no notice of when it comes round to them. */
const FLOOD = `const socket = require("node:dgram").createSocket("udp4");
const octets = Buffer.alloc(1200);
octets[2] = 0x80;
let left = 12000;
const send = () => left-- > 0 ? socket.send(octets, 53, "127.0.0.1", send) : socket.close();
send();`;

const skip = (await NetworkNamespace.whyNot()) ?? (await whyNoTracking()) ?? false;

async function whyNoTracking(): Promise<string | undefined> {
  await using namespace = await NetworkNamespace.make();
  const failed = await namespace.run("nft", "list", "ruleset").catch(() => "failed");
  if (failed === "failed") return "'nft' does not work here";
  return existsSync("/proc/net/stat/nf_conntrack") ? undefined : "this kernel tracks no connections";
}

describe("what the kernel lost", { skip }, () => {
  let folder: string;
  let namespace: NetworkNamespace;
  let server: Program;
  let findings: readonly Finding[];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "portolan-"));
    writeFileSync(join(folder, "Corefile"), ".:53 {\n    console 127.0.0.1:8184\n    whoami\n}\n");
    namespace = await NetworkNamespace.make();
    for (const words of [
      "add table ip race",
      "add chain ip race post { type nat hook postrouting priority 100; }",
      "add rule ip race post udp dport 9999 snat to 127.0.0.1:5000",
    ])
      await namespace.run("nft", words);
    server = inside(...portolanWords("-conf", join(folder, "Corefile")));
    await server.waitForOutput(/^\w+\/\w+, node\d/m);
    const capture = join(folder, "capture");
    await using doctor = inside(
      ...portolanWords("doctor", "-for", "1h", "-probe=false", "-format", "json", "-record", capture),
    );
    // The capture compares with the counters from here on.
    await untilTrue(async () => doctor.hasEnded || readFileSync(capture, "utf8").includes('"facts"'));
    await namespace.run(process.execPath, "-e", RACE);
    server.kill("SIGSTOP");
    await namespace.run(process.execPath, "-e", FLOOD);
    server.kill("SIGCONT");
    doctor.kill("SIGINT");
    await doctor.ended;
    const diagnosis: Diagnosis = JSON.parse(doctor.output);
    findings = diagnosis.findings;
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await namespace?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  function inside(...words: readonly string[]): Program {
    const [command = "", ...args] = namespace.words(...words);
    return new Program(command, args);
  }

  function finding(code: string): Finding {
    const found = findings.find((each) => each.code === code);
    assert.ok(found, findings.map(({ title }) => title).join("\n"));
    return found;
  }

  test("in the race for an entry of the table", () => {
    const { title, explanation, figures, causes } = finding("conntrack");
    assert.match(title, /^3 packets were lost because their connection could not be tracked$/);
    assert.match(explanation, /race for one entry/);
    assert.equal(figures.notInserted, 3);
    assert.match(causes[0]?.figure ?? "", / 3 not inserted$/);
  });

  test("in buffers that were full", () => {
    const { title, figures } = finding("udp-drops");
    assert.match(title, /^\d+ queries were lost in full UDP buffers while this ran$/);
    assert.ok((figures.socketDrops ?? 0) > 100, JSON.stringify(figures));
  });
});
