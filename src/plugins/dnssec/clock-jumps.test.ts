import assert from "node:assert/strict";
import { test } from "node:test";
import { newKeyFiles } from "../../../test/support/key-files.ts";
import { Name, RRSIG, readKeyPair } from "../../dns/index.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock, records, until } from "../../plugin/testing.ts";
import { DnssecMetrics } from "./metrics.ts";
import { SignatureStore } from "./signature-store.ts";
import { LateSignature, Signer } from "./signer.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const zone = Name.parse("example.org.");
const files = newKeyFiles("example.org.");
const key = readKeyPair(files.key, files.private);
const counters = new DnssecMetrics(new MetricsRegistry()).counters("test");

/** Signs names of a zone, and checks the signatures against the clock. */
class Signing {
  readonly clock = new FakeClock();
  stored = 0;
  readonly #signer = new Signer(new SignatureStore(1_000, key.signatureOctets), this.clock, () => {
    this.stored++;
  });
  #awaited = 0;

  /** Requests a signature. @returns false if it has to be made first */
  ask(name: string): boolean {
    const rrset = records(`${name}.example.org. 60 IN A 192.0.2.1`);
    const piece = this.#signer.sign(rrset, zone, key, counters, { settled: () => this.#awaited-- });
    if (piece instanceof LateSignature) {
      this.#awaited++;
      return false;
    }
    assert.ok(RRSIG.is(piece));
    const now = this.clock.wallTime();
    const { inception, expiration } = piece.data;
    assert.ok(inception * 1_000 <= now, "a signature that begins in the future");
    assert.ok(expiration * 1_000 >= now + DAY, "a signature that ends before caches forget it");
    return true;
  }

  /** Waits for the requested signatures. */
  async settle(count: number): Promise<void> {
    await until(() => this.#awaited === 0 && this.stored === count);
  }
}

const names = Array.from({ length: 100 }, (_, index) => `h${index}`);

for (const [what, jump] of [
  ["a day on", DAY],
  ["an hour back", -HOUR],
] as const) {
  test(`the clock is set ${what}: signatures go on, and none is made`, async () => {
    const signing = new Signing();
    for (const name of names) signing.ask(name);
    await signing.settle(names.length);
    signing.clock.setWallTime(signing.clock.wallTime() + jump);
    for (const name of names) assert.equal(signing.ask(name), true);
    await signing.settle(names.length);
  });
}

for (const [what, jump] of [
  ["a year on", 365 * DAY],
  ["a day back", -DAY],
  ["a year back", -365 * DAY],
  ["seven days and a half on", 7.5 * DAY],
] as const) {
  test(`the clock is set ${what}: each signature is made again once before it is served`, async () => {
    const signing = new Signing();
    for (const name of names) signing.ask(name);
    await signing.settle(names.length);
    signing.clock.setWallTime(signing.clock.wallTime() + jump);
    for (let round = 0; round < 3; round++) for (const name of names) assert.equal(signing.ask(name), false);
    await signing.settle(2 * names.length);
    for (const name of names) assert.equal(signing.ask(name), true);
    await signing.settle(2 * names.length);
  });
}

test("signatures that expire together are renewed a few at a time, without delaying others", async () => {
  const signing = new Signing();
  for (const name of names) signing.ask(name);
  await signing.settle(names.length);
  signing.clock.setWallTime(signing.clock.wallTime() + 6.5 * DAY);
  let made = names.length;
  for (let round = 0; round < 5; round++) {
    for (const name of names) assert.equal(signing.ask(name), true);
    made += 8;
    await signing.settle(made);
  }
  for (const name of names) signing.ask(name);
  assert.equal(signing.ask("new"), false);
  await signing.settle(made + 9);
});
