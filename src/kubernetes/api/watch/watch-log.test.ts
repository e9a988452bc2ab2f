import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { MemoryLog } from "../../../lib/logging/log.ts";
import { FakeClock } from "../../../lib/time/clock.ts";
import { ApiConnectionError, ApiStatusError } from "../access/api-error.ts";
import { WatchLog } from "./watch-log.ts";

const LIST = { verb: "list", resource: "services", group: "" } as const;
const WATCH = { ...LIST, verb: "watch" } as const;
const REFUSED = new ApiConnectionError(
  "http://a",
  Object.assign(new Error("connect"), { code: "ECONNREFUSED" }),
);
const DENIED = new ApiStatusError(401, "Unauthorized", "", undefined);

let clock: FakeClock;
let log: MemoryLog;
let heardAt: number | undefined;
let watchLog: WatchLog;

beforeEach(() => {
  clock = new FakeClock();
  log = new MemoryLog();
  heardAt = undefined;
  watchLog = new WatchLog({
    log,
    clock,
    age: () => (heardAt === undefined ? undefined : clock.now() - heardAt),
  });
});

/** Listed, watched, and last heard of 40 seconds ago. */
function watchedFor40Seconds(): void {
  heardAt = clock.now();
  watchLog.watching("services");
  clock.advance(40_000);
}

describe("the log of a watch", () => {
  it("says at the loss how old what is known is, and when it is found how old it had grown", () => {
    watchedFor40Seconds();
    watchLog.failed(REFUSED, WATCH, 150);
    clock.advance(20_000);
    watchLog.watching("services");
    assert.deepEqual(log.lines, [
      "[WARNING] lost the watch on services: nothing listens at http://a (connection refused); answering from what is known, 40s old, next try in 150ms",
      "[INFO] watching again: services, after 20s; what was known had grown 1m0s old",
    ]);
  });

  it("repeats a trouble that lasts once a minute, with the age of then, and another one at once", () => {
    watchedFor40Seconds();
    for (let second = 0; second < 90; second++) {
      watchLog.failed(REFUSED, WATCH, 1000);
      clock.advance(1000);
    }
    watchLog.failed(DENIED, WATCH, 1000);
    assert.deepEqual(
      log.lines.map((line) => /known, (.+) old/.exec(line)?.[1]),
      ["40s", "1m40s", "2m10s"],
    );
  });

  it("mentions troubles that alternate once a minute each, and how the watch is found again", () => {
    watchedFor40Seconds();
    for (let second = 0; second < 70; second++) {
      watchLog.failed(second % 2 === 0 ? REFUSED : DENIED, WATCH, 1000);
      if (second % 10 === 9) watchLog.watching("services");
      clock.advance(1000);
    }
    const count = (words: string) => log.lines.filter((line) => line.includes(words)).length;
    assert.deepEqual(
      ["connection refused", "401 Unauthorized", "watching again"].map(count),
      [2, 2, 2],
      log.lines.join("\n"),
    );
  });

  it("knows a bounded number of troubles apart", () => {
    for (let number = 0; number < 10_000; number++) {
      watchLog.failed(new ApiStatusError(500, "", `request ${number}`, undefined), LIST, 1);
    }
    log.lines.length = 0;
    watchLog.failed(new ApiStatusError(500, "", "request 9999", undefined), LIST, 1);
    assert.equal(log.lines.length, 0);
    watchLog.failed(new ApiStatusError(500, "", "request 0", undefined), LIST, 1);
    assert.equal(log.lines.length, 1);
  });

  it("speaks of no age before the first list", () => {
    watchLog.failed(REFUSED, LIST, 150);
    clock.advance(5000);
    watchLog.watching("services");
    assert.deepEqual(log.lines, [
      "[WARNING] cannot list services: nothing listens at http://a (connection refused); next try in 150ms",
      "[INFO] watching: services, after 5s",
    ]);
  });
});

it("the state is that of the watch, with the age of what is known in seconds", () => {
  const since = new Date(clock.wallTime() + 42_000).toISOString().slice(0, 19);
  assert.equal(watchLog.state, "being listed");
  heardAt = clock.now();
  assert.equal(watchLog.state, "synced, age 0s");
  watchLog.watching("services");
  clock.advance(42_900);
  assert.equal(watchLog.state, "watching, age 42s");
  watchLog.failed(DENIED, WATCH, 150);
  clock.advance(10_000);
  assert.equal(
    watchLog.state,
    `lost since ${since}Z, age 52s: the API server rejects the credentials (401 Unauthorized): check the token or client certificate`,
  );
  watchLog.watching("services");
  heardAt = clock.now();
  assert.equal(watchLog.state, "watching, age 0s");
});

it("the state says since when the first list fails, and why", () => {
  clock.advance(1000);
  const since = new Date(clock.wallTime()).toISOString().slice(0, 19);
  watchLog.failed(REFUSED, LIST, 150);
  clock.advance(60_000);
  assert.equal(
    watchLog.state,
    `not listed, failing since ${since}Z: nothing listens at http://a (connection refused)`,
  );
});
