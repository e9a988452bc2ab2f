/**
 * The number of threads changes with each reload, under load and on a busy machine. `npm run bench -- --soak 1` has the long form.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { reloadStorm } from "../support/reload-storm.ts";

const RELOADS = 6;

test("each reload between one thread and two ends, and no query or connection is lost", {
  skip: process.platform !== "linux",
}, async (context) => {
  const { reloads, udp, tcp, longestSeconds, log } = await reloadStorm({
    reloads: RELOADS,
    busy: 2,
    pause: 230,
    say: (line) => context.diagnostic(line),
  });
  context.diagnostic(
    `${udp.sent} queries over UDP, ${tcp.sent} connections; the longest reload took ${longestSeconds.toFixed(1)} s`,
  );
  assert.equal(reloads, RELOADS);
  assert.ok(udp.sent > 100 && tcp.sent > 100, `${udp.sent} and ${tcp.sent}`);
  assert.deepEqual([udp.lost, tcp.lost], [0, 0]);
  assert.doesNotMatch(log, /damaged|\[ERROR\]/);
});
