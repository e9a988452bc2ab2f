import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newKeyFiles } from "../../../test/support/key-files.ts";
import { FakeClock, PluginTest } from "../../plugin/testing.ts";
import sign from "./index.ts";
import { readSignatureTime } from "./signature-time.ts";
import { ZoneFileSigning } from "./zone-file-signing.ts";

const DAY = 86_400;
const ZONE = "$TTL 60\n@ SOA a. b. 5 7200 3600 1209600 300\n@ NS ns\nns A 192.0.2.9\n";

class Signing {
  readonly clock = new FakeClock({ wallTime: Date.now() });
  readonly source: string;
  readonly #target: string;
  readonly #running: PluginTest<unknown>;

  constructor(folder: string) {
    this.source = join(folder, "db");
    this.#target = join(folder, "db.example.org.signed");
    writeFileSync(this.source, ZONE);
    const files = newKeyFiles("example.org.");
    writeFileSync(join(folder, "Kone.key"), files.key);
    writeFileSync(join(folder, "Kone.private"), files.private);
    const lines = ` key file ${folder}/Kone\n directory ${folder}`;
    this.#running = PluginTest.of(sign, `sign ${this.source} example.org {\n${lines}\n}`, {
      clock: this.clock,
    });
  }

  start(): Promise<void> {
    return this.#running.start();
  }

  stop(): Promise<void> {
    return this.#running.stop();
  }

  jump(seconds: number): void {
    this.clock.setWallTime(this.clock.wallTime() + seconds * 1_000);
  }

  /** Checks the files `times` times, and returns how many signings there were so far. */
  async look(times: number): Promise<number> {
    const [instance] = this.#running.instances;
    assert.ok(instance instanceof ZoneFileSigning);
    for (let time = 0; time < times; time++) await instance.check(false);
    const { lines } = this.#running.log;
    assert.deepEqual(
      lines.filter((line) => /warn|error/i.test(line)),
      [],
    );
    return lines.filter((line) => line.includes("Successfully signed")).length;
  }

  /** The serial of the signed file, after checking its signatures against the clock. */
  get serial(): number {
    const text = readFileSync(this.#target, "utf8");
    const [, expiration = "", inception = ""] = /RRSIG\s+SOA .*?(\d{14}) (\d{14})/.exec(text) ?? [];
    const now = this.clock.wallTime() / 1_000;
    assert.ok((readSignatureTime(inception) ?? Number.POSITIVE_INFINITY) <= now, "they begin in the future");
    assert.ok((readSignatureTime(expiration) ?? 0) > now + 7 * DAY, "they end in less than a week");
    return Number(/SOA\s+\S+ \S+ (\d+)/.exec(text)?.[1]);
  }
}

async function signing(use: (signed: Signing) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-sign-"));
  const signed = new Signing(folder);
  try {
    await signed.start();
    await use(signed);
  } finally {
    await signed.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

test("the clock is set forward by a year and back: the zone is signed once each time, and its serial never goes back", async () => {
  await signing(async (signed) => {
    assert.equal(await signed.look(3), 1);
    const serials = [signed.serial];
    for (const [jump, times] of [
      [DAY, 1],
      [365 * DAY, 2],
      [-365 * DAY, 3],
      [-2 * DAY, 4],
      [2 * DAY, 4],
      [-365 * DAY, 5],
      [366 * DAY, 6],
    ] as const) {
      signed.jump(jump);
      assert.equal(await signed.look(3), times, `set by ${jump} seconds`);
      serials.push(signed.serial);
    }
    for (const [index, serial] of serials.entries())
      assert.ok(index === 0 || serial >= (serials[index - 1] ?? 0), serials.join(" "));
    assert.equal(new Set(serials).size, 6);
  });
});

test("a zone file from before the clock was set back is signed once, and again when it changes", async () => {
  const tomorrow = Date.now() / 1_000 + DAY;
  await signing(async (signed) => {
    assert.equal(await signed.look(1), 1);
    utimesSync(signed.source, tomorrow, tomorrow);
    assert.equal(await signed.look(3), 2);
    // Its time stamp is older than the signed file's.
    writeFileSync(signed.source, `${ZONE}www A 192.0.2.1\n`);
    utimesSync(signed.source, 1_000_000_000, 1_000_000_000);
    assert.equal(await signed.look(3), 3);
  });
});
