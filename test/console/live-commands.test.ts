/** `tail`, `top` and `doctor` while their server reads its Corefile anew, starts anew, or goes away. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { Diagnosis } from "../../src/console/doctor/diagnose.ts";
import { ask } from "../support/dns-client.ts";
import { Portolan, portolan } from "../support/portolan.ts";
import type { Program } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

/** A client that connects at the moment of the end is accepted, and cut off. */
const GONE =
  /^-server 127\.0\.0\.1:\d+ has gone away: (nothing listens there \(.*|the connection was closed)\n$/;

let server: Portolan;

beforeEach(async () => {
  server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")}
    whoami
}
`,
  );
});
afterEach(() => server[Symbol.asyncDispose]());

function live(command: string, ...flags: readonly string[]): Program {
  return portolan([command, "-server", `127.0.0.1:${server.portOf("console")}`, ...flags]);
}

/** Asks until the command says so: it may not be listening yet. */
async function askUntil(program: Program, name: string, isTold: () => boolean): Promise<void> {
  await untilTrue(async () => {
    if (program.hasEnded) throw new Error(`ended without printing ${name}:\n${program.describe()}`);
    if (!isTold()) await ask(server, name);
    return isTold();
  });
}

function askUntilPrinted(program: Program, name: string): Promise<void> {
  return askUntil(program, name, () => program.output.includes(name));
}

/** The same server, in a process of its own. */
async function startAgain(): Promise<Program> {
  const again = portolan(["-conf", "Corefile"], { cwd: server.folder });
  await again.waitForOutput(/^\w+\/\w+, node\d/m);
  return again;
}

describe("tail", () => {
  test("does not notice that the server reads its Corefile anew", async () => {
    await using tail = live("tail");
    await askUntilPrinted(tail, "before.example.");
    await server.reload();
    await ask(server, "meanwhile.example.");
    await askUntilPrinted(tail, "after.example.");
    assert.match(tail.output, /meanwhile\.example\./);
    assert.equal(tail.errors, "");
    const lines = tail.output.split("\n").filter((line) => line !== "");
    assert.equal(new Set(lines).size, lines.length, "a query is told twice");
  });

  test("goes on once the server is there again", async () => {
    await using tail = live("tail");
    await askUntilPrinted(tail, "before.example.");
    await server.stop();
    await tail.waitForErrors(/^-server 127\.0\.0\.1:\d+ has gone away: tried again for 30 s\n/);
    await using _again = await startAgain();
    await tail.waitForErrors(/ is back\n$/);
    await askUntilPrinted(tail, "after.example.");
  });

  test("ends with 2 when the server stays away", async () => {
    await using tail = live("tail", "-reconnect", "0s");
    await askUntilPrinted(tail, "before.example.");
    await server.stop();
    assert.deepEqual(await tail.ended, { code: 2, signal: null });
    assert.match(tail.errors, GONE);
  });
});

test("top goes on once the server is there again, and ends with 2 when it stays away", async () => {
  await using top = live("top");
  await top.waitForOutput(/queries\/s/);
  await server.stop();
  await top.waitForErrors(/has gone away: tried again for 30 s/);
  const start = top.output.length;
  await using again = await startAgain();
  await top.waitForOutput(/queries\/s/, start);
  await using impatient = live("top", "-reconnect", "0s");
  await impatient.waitForOutput(/queries\/s/);
  await again.stop();
  assert.deepEqual(await impatient.ended, { code: 2, signal: null });
  assert.match(impatient.errors, GONE);
});

describe("doctor", () => {
  const LONG = ["-for", "1h", "-format", "json", "-probe=false", "-record"];

  /** Starts it, and waits until it listens: what it has heard is in its capture. */
  async function isListening(): Promise<Program> {
    const file = join(server.folder, "capture");
    const doctor = live("doctor", ...LONG, file, "-reconnect", "0s");
    // Those that the server still knew come at once.
    for (const name of ["known.example.", "new.example."])
      await askUntil(doctor, name, () => existsSync(file) && readFileSync(file, "utf8").includes(name));
    return doctor;
  }

  test("judges what it has seen when the server goes away", async () => {
    await using doctor = await isListening();
    await server.stop();
    const { code } = await doctor.ended;
    assert.match(doctor.errors, GONE);
    const { findings, observed }: Diagnosis = JSON.parse(doctor.output);
    assert.ok(observed.rows > 0);
    assert.equal(code, findings.length > 0 ? 1 : 2);
  });

  test("judges what it has seen when it is interrupted", async () => {
    await using doctor = await isListening();
    doctor.kill("SIGINT");
    const { code } = await doctor.ended;
    const { findings, observed }: Diagnosis = JSON.parse(doctor.output);
    assert.ok(observed.rows > 0);
    assert.deepEqual([doctor.errors, code], ["", findings.length > 0 ? 1 : 0]);
  });
});
