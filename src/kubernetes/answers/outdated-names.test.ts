import assert from "node:assert/strict";
import { test } from "node:test";
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Name } from "../../dns/name.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { OutdatedClusterNames } from "./outdated-names.ts";

const ZONE = Name.parse("cluster.local.");

for (const [spent, pause] of [
  [0, 1],
  [2, 18],
  [30, 50],
] as const) {
  test(`after a telling that takes ${spent} ms, changes are gathered for ${pause} ms`, () => {
    const clock = new FakeClock();
    let working = 0;
    const told: string[][] = [];
    const outdated = new OutdatedClusterNames({
      zones: [ZONE],
      clock: {
        now: () => clock.now() + working,
        turnTime: () => clock.now() + working,
        wallTime: () => clock.wallTime(),
        after: (delay, callback) => clock.after(delay, callback),
        every: (interval, callback) => clock.every(interval, callback),
      },
      forget: (names) => {
        told.push(names.map(String));
        working += spent;
      },
      complete: () => undefined,
    });
    outdated.addBelow(ZONE, "web.shop.svc");
    outdated.schedule();
    assert.deepEqual(told, [["web.shop.svc.cluster.local."]]);
    outdated.addBelow(ZONE, "api.shop.svc");
    outdated.schedule();
    clock.advance(pause - 0.5);
    assert.equal(told.length, 1);
    clock.advance(0.5);
    assert.deepEqual(told[1], ["api.shop.svc.cluster.local."]);
  });
}

test("names that were told are not kept by those that come later", () => {
  setFlagsFromString("--expose-gc");
  const collect: (options: { type: "minor" }) => void = runInNewContext("gc");
  const clock = new FakeClock();
  const outdated = new OutdatedClusterNames({
    zones: [],
    clock,
    forget: () => undefined,
    complete: () => undefined,
  });
  const change = (many: number): void => {
    for (let at = 0; at < many; at++) {
      outdated.add(Name.parse(`service-${at}.${"namespace".repeat(6)}.svc.cluster.local.`), at);
      outdated.schedule();
      clock.advance(1_000);
      if (at % 50 === 0) collect({ type: "minor" });
    }
  };
  const oldOctets = (): number =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? 0;
  change(1_000);
  // A time without changes: what is there goes to the old generation.
  for (let at = 0; at < 3; at++) collect({ type: "minor" });
  const before = oldOctets();
  change(4_000);
  assert.ok(oldOctets() - before < 200_000, `${oldOctets() - before} octets of the old generation`);
});
