import assert from "node:assert/strict";
import { it } from "node:test";
import { ConnectBackOff } from "./connect-back-off.ts";

it("pauses longer with each failure, up to two seconds, and not at all after a success", () => {
  const backOff = new ConnectBackOff({ unpredictable: () => 0xff });
  assert.equal(backOff.refusal(0), undefined);
  const pauses: number[] = [];
  for (let now = 0, count = 0; count < 8; count++) {
    backOff.failed(now, `failure ${count}`);
    const begin = now;
    while (backOff.refusal(now) !== undefined) {
      assert.equal(backOff.refusal(now), `failure ${count}`);
      now++;
    }
    pauses.push(now - begin);
  }
  assert.deepEqual(pauses, [50, 100, 200, 400, 799, 1_597, 1_997, 1_997]);
  backOff.failed(0, "again");
  backOff.succeeded();
  assert.equal(backOff.refusal(0), undefined);
  backOff.failed(0, "anew");
  assert.equal(backOff.refusal(50), undefined);
});

it("randomizes the pause, from half of it", () => {
  const backOff = new ConnectBackOff({ unpredictable: () => 0 });
  backOff.failed(0, "refused");
  assert.equal(backOff.refusal(24), "refused");
  assert.equal(backOff.refusal(25), undefined);
});
