import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { SourceTest, type SourceTestOptions } from "../../../../test/support/kubernetes-api/source-test.ts";
import { FakeClock } from "../../../lib/time/clock.ts";
import { endpointAccess } from "../access/access.ts";

/** Milliseconds by which the clock moves on at a time, with all that a request takes in between. */
const STEP_MS = 100;
/** Turns of the event loop for a request over loopback, its answer and what follows from it. */
const TURNS = 8;

async function pass(clock: FakeClock, milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += STEP_MS) {
    clock.advance(STEP_MS);
    for (let turn = 0; turn < TURNS; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** Puts a Service and waits until it is known. @returns seconds by the clock */
async function secondsUntilRight(test: SourceTest, clock: FakeClock, name: string): Promise<number> {
  test.putService(name);
  const start = clock.now();
  while (!test.services.includes(`default/${name}`) && clock.now() - start < 60_000)
    await pass(clock, STEP_MS);
  return (clock.now() - start) / 1000;
}

async function start(options: SourceTestOptions = {}) {
  const clock = new FakeClock();
  const test = await SourceTest.start({ clock, ...options });
  await test.watching();
  const { length } = test.api.requests;
  return { test, clock, requestsSince: () => test.api.requests.slice(length) };
}

describe("what is known is right two seconds after", () => {
  it("an API that refused connections for 12 s, and again soon after", async () => {
    const { test, clock } = await start();
    await using _ = test;
    for (const name of ["first", "again", "a-third-time"]) {
      await test.api.close();
      await pass(clock, 12_000);
      await test.api.open();
      const seconds = await secondsUntilRight(test, clock, name);
      assert.ok(seconds <= 2, `${name}: ${seconds} s`);
    }
  });

  it("credentials that were refused for 15 s, as soon as the token file has others", async () => {
    const folder = await mkdtemp(join(tmpdir(), "portolan-token-"));
    const file = join(folder, "token");
    await writeFile(file, "good");
    try {
      const { test, clock, requestsSince } = await start({
        access: ({ url }) => ({
          ...endpointAccess([url], undefined, {}),
          credentials: { kind: "tokenFile", file },
        }),
      });
      await using _ = test;
      test.api.admits = ({ authorization }) => authorization === "Bearer better";
      test.api.cutConnections();
      await pass(clock, 15_000);
      await writeFile(file, "better");
      const seconds = await secondsUntilRight(test, clock, "late");
      assert.ok(seconds <= 2, `${seconds} s`);
      assert.ok(requestsSince().length <= 50, `${requestsSince().length} requests`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("an API that had too much to do for 25 s, which is asked by one watch at a time", async () => {
    const { test, clock, requestsSince } = await start();
    await using _ = test;
    const fault = { kind: "status", code: 429, retryAfter: 1 } as const;
    test.api.faults.add({ fault, times: 1_000 });
    test.api.cutConnections();
    await pass(clock, 25_000);
    test.api.faults.clear();
    assert.ok(requestsSince().length <= 45, `${requestsSince().length} requests`);
    const seconds = await secondsUntilRight(test, clock, "late");
    assert.ok(seconds <= 2, `${seconds} s`);
  });

  it("an outage that changed its kind: refused connections, a gateway without a server, refused credentials", async () => {
    const { test, clock } = await start();
    await using _ = test;
    await test.api.close();
    await pass(clock, 8_000);
    test.api.faults.add({ fault: { kind: "status", code: 502 }, times: 1_000 });
    await test.api.open();
    await pass(clock, 8_000);
    test.api.faults.clear();
    test.api.admits = () => false;
    await pass(clock, 8_000);
    test.api.admits = () => true;
    const seconds = await secondsUntilRight(test, clock, "late");
    assert.ok(seconds <= 2, `${seconds} s`);
  });
});

it("a good answer to the probe does not speed up watches that are still refused", async () => {
  const { test, clock, requestsSince } = await start({ kinds: ["services"] });
  await using _ = test;
  const when = ({ resource }: { resource: string }) => resource === "services";
  test.api.faults.add({ fault: { kind: "status", code: 401 }, when, times: 10_000 });
  test.api.cutConnections();
  await pass(clock, 120_000);
  const asked = requestsSince().filter(when);
  assert.ok(asked.length <= 25, `${asked.length} requests in 120 s`);
});

it("watches that break after a second each, for a minute, go on from where they were without a list", async () => {
  const { test, clock, requestsSince } = await start();
  await using _ = test;
  for (let second = 0; second < 60; second++) {
    await pass(clock, 1_000);
    test.api.cutConnections();
    if (second % 20 !== 19) continue;
    const seconds = await secondsUntilRight(test, clock, `late-${second}`);
    assert.ok(seconds <= 0.2, `${seconds} s`);
  }
  const lists = requestsSince().filter(
    ({ verb, parameters }) => verb === "list" || parameters.has("sendInitialEvents"),
  );
  assert.deepEqual(
    lists.map(({ path }) => path),
    [],
  );
});
