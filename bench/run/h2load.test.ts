import assert from "node:assert/strict";
import { test } from "node:test";
import { parseH2load } from "./h2load.ts";

const OUTPUT = `starting benchmark...
finished in 1.00s, 5984.00 req/s, 620.11KB/s
requests: 5990 total, 6246 started, 5984 done, 5980 succeeded, 3 failed, 1 errored, 0 timeout
status codes: 5980 2xx, 0 3xx, 4 4xx, 0 5xx
traffic: 620.11KB (635000) total, 52.10KB (53350) headers (space savings 90.10%), 290.00KB (296960) data
`;

test("h2load's statistics are read", () => {
  assert.deepEqual(parseH2load(OUTPUT), {
    sent: 5984,
    answered: 5980,
    lost: 4,
    rcodes: { REFUSED: 4 },
  });
  assert.throws(() => parseH2load("could not connect"), /did not say what came back:\ncould not connect/);
});
