import assert from "node:assert/strict";
import { test } from "node:test";
import { Name } from "../../dns/name.ts";
import { FakeClock } from "../../lib/clock.ts";
import { OutdatedNames } from "./outdated-names.ts";

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
    const outdated = new OutdatedNames({
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
