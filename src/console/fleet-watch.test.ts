import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { untilTrue } from "../../test/support/until-true.ts";
import type { NowView } from "./api-types.ts";
import { FleetWatch } from "./fleet-watch.ts";

const MINUTE = 60_000;

const OWN: NowView = {
  ...{ time: 0, version: "1", hostname: "own", startedAt: 0, threads: 1, rate: 0 },
  minute: { queries: 0, rcodes: {}, types: {}, hitRatio: null, p50: null, p90: null, p99: null },
  ...{ upstreams: [], clusters: [], memory: { resident: 0, heap: 0, limit: null } },
  ...{
    pauses: { p99: 0, longest: 0 },
    shed: 0,
    ...{ notReady: [], troubles: [], servedStale: 0 },
    sampling: { interval: 1, missed: 0 },
  },
  history: { step: 5, points: [] },
};

const ANSWER = JSON.stringify({ now: OWN, sha512: "abc" });

/** A replica that says as much as the fleet looks at. */
async function startReplica(
  answer: string | ((response: ServerResponse, request: number) => void) = ANSWER,
  host = "127.0.0.1",
) {
  const authorizations: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const count = authorizations.push(request.headers.authorization);
    if (typeof answer === "string") response.end(answer);
    else answer(response, count);
  }).listen(0, host);
  await once(server, "listening");
  const place = server.address();
  const address = `127.0.0.1:${typeof place === "object" && place !== null ? place.port : 0}`;
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { address, authorizations, stop };
}

function makeWatch(
  sources: readonly string[],
  lookUp: (host: string) => readonly string[] | Promise<readonly string[]> = () => [],
  viewPatience = MINUTE,
) {
  let now = 0;
  const patience: AbortController[] = [];
  const watch = new FleetWatch({
    sources,
    token: () => "a token",
    lookUp: async (host) => lookUp(host),
    own: () => ({ address: "127.0.0.1:1", now: OWN, sha512: "own" }),
    now: () => now,
    viewPatience,
    timeout: () => {
      const controller = new AbortController();
      patience.push(controller);
      return controller.signal;
    },
  });
  return {
    watch,
    pass: (milliseconds: number) => (now += milliseconds),
    /** The time of all that have been asked and have not answered is up. */
    giveUp: () => {
      for (const controller of patience.splice(0)) controller.abort();
    },
  };
}

test("without a list a replica knows itself alone", async () => {
  const { replicas } = await makeWatch([]).watch.view();
  assert.deepEqual(
    replicas.map(({ address, sha512, now }) => [address, sha512, now?.hostname]),
    [["127.0.0.1:1", "own", "own"]],
  );
  assert.ok(!("history" in (replicas[0]?.now ?? {})));
});

test("asks each address of a name with the token, and at most once a second", async () => {
  const replica = await startReplica();
  const [, port] = replica.address.split(":");
  const { watch, pass } = makeWatch([`consoles.example:${port}`], () => ["127.0.0.1"]);
  const [first, again] = await Promise.all([watch.view(), watch.view()]);
  assert.deepEqual(first, again);
  assert.deepEqual(replica.authorizations, ["Bearer a token"]);
  assert.deepEqual(
    first.replicas.map(({ address, sha512, problem }) => [address, sha512, problem]),
    [[replica.address, "abc", ""]],
  );
  pass(1_001);
  await watch.view();
  assert.equal(replica.authorizations.length, 2);
  await replica.stop();
});

test("a replica without a name is shown as away for ten minutes", async () => {
  const replica = await startReplica();
  const [, port] = replica.address.split(":");
  let addresses = ["127.0.0.1"];
  const { watch, pass } = makeWatch([`consoles.example:${port}`], () => addresses);
  await watch.view();
  await replica.stop();
  // The other one has taken its place.
  const successor = await startReplica();
  addresses = ["127.0.0.2"];
  pass(9 * MINUTE);
  const { replicas } = await watch.view();
  const gone = replicas.find(({ address }) => address === replica.address);
  assert.deepEqual([gone?.now, gone?.problem], [null, "connection refused (ECONNREFUSED)"]);
  pass(2 * MINUTE);
  assert.ok((await watch.view()).replicas.every(({ address }) => address !== replica.address));
  await successor.stop();
});

test("those that have answered are shown while one hangs, which is away when its time is up", async () => {
  const good = await startReplica();
  const hanging = await startReplica(() => undefined);
  const { watch, giveUp } = makeWatch([good.address, hanging.address], undefined, 1);
  const rows = async () => {
    await setImmediate();
    const { replicas } = await watch.view();
    const rowOf = (wanted: string) => {
      const row = replicas.find(({ address }) => address === wanted);
      return row?.awaited ? "awaited" : row?.now === null ? row.problem : row?.now.hostname;
    };
    assert.equal(replicas.length, 2);
    return [rowOf(good.address), rowOf(hanging.address)];
  };
  // The view does not wait for it.
  await untilTrue(async () => (await rows())[0] !== "awaited");
  assert.deepEqual(await rows(), ["own", "awaited"]);
  giveUp();
  await untilTrue(async () => (await rows())[1] !== "awaited");
  assert.deepEqual(await rows(), ["own", "no answer within 2 s"]);
  await Promise.all([good, hanging].map(({ stop }) => stop()));
});

test("one that begins to hang is shown as it was until its time is up", async () => {
  const replica = await startReplica((response, request) => {
    if (request <= 1) response.end(ANSWER);
  });
  const { watch, pass, giveUp } = makeWatch([replica.address], undefined, 1);
  const row = async () => {
    await setImmediate();
    return (await watch.view()).replicas[0];
  };
  await untilTrue(async () => (await row())?.awaited === false);
  pass(1_001);
  assert.equal((await row())?.now?.hostname, "own");
  giveUp();
  await untilTrue(async () => (await row())?.now === null);
  assert.equal((await row())?.problem, "no answer within 2 s");
  await replica.stop();
});

test("a slow name look-up delays no replica, and removes none", async () => {
  const replica = await startReplica();
  const [, port] = replica.address.split(":");
  const name = `consoles.example:${port}`;
  const lookUps: ((addresses: readonly string[]) => void)[] = [];
  const lookUp = (): Promise<readonly string[]> => new Promise((resolve) => lookUps.push(resolve));
  const { watch, pass } = makeWatch([name], lookUp, 1);
  const rows = async () => {
    await setImmediate();
    const { replicas } = await watch.view();
    return replicas.map(({ address, now, awaited }) => [address, awaited ? "awaited" : now?.hostname]);
  };
  assert.deepEqual(await rows(), [[name, "awaited"]]);
  lookUps.shift()?.(["127.0.0.1"]);
  await untilTrue(async () => (await rows())[0]?.[1] !== "awaited");
  assert.deepEqual(await rows(), [[replica.address, "own"]]);
  pass(1_001);
  assert.deepEqual(await rows(), [[replica.address, "own"]]);
  lookUps.shift()?.(["127.0.0.1"]);
  await replica.stop();
});

test("what is no console, or says too much, is away", async () => {
  const other = await startReplica('{"hello":1}');
  const verbose = await startReplica(JSON.stringify({ now: OWN, sha512: "abc", more: "x".repeat(300_000) }));
  const odd = await Promise.all(
    [
      { rate: "<img src=x>" },
      { minute: { ...OWN.minute, queries: [1] } },
      { memory: null },
      { hostname: { a: 1 } },
      { version: "x".repeat(1_000) },
      { hostname: "turned\u202eround" },
      { hostname: "two\nlines" },
      { rate: -1 },
      { memory: { ...OWN.memory, resident: 1e300 } },
    ].map((part) => startReplica(JSON.stringify({ now: { ...OWN, ...part }, sha512: "abc" }))),
  );
  const addresses = [other, verbose, ...odd].map(({ address }) => address);
  const { replicas } = await makeWatch(addresses).watch.view();
  const problemOf = (wanted: string): string =>
    replicas.find(({ address }) => address === wanted)?.problem ?? "";
  for (const { address } of [other, ...odd])
    assert.match(problemOf(address), /not as a console of this version of Portolan/);
  assert.match(problemOf(verbose.address), /too large/);
  await Promise.all([other, verbose, ...odd].map(({ stop }) => stop()));
});

/** Addresses of this machine alone. */
function addressesIn(network: number, count: number): string[] {
  return Array.from({ length: count }, (_, at) => `127.0.${network}.${at + 1}`);
}

test("those that are gone take no place of those that are there", async () => {
  const everywhere = await startReplica(ANSWER, "0.0.0.0");
  const [, port] = everywhere.address.split(":");
  let addresses = addressesIn(1, 40);
  const { watch, pass } = makeWatch([`consoles.example:${port}`], () => addresses);
  await watch.view();
  addresses = addressesIn(2, 40);
  pass(2_000);
  const { replicas } = await watch.view();
  const present = new Set(replicas.flatMap(({ address, now }) => (now === null ? [] : [address])));
  assert.deepEqual(
    addresses.filter((address) => !present.has(`${address}:${port}`)),
    [],
  );
  await everywhere.stop();
});

test("says how many are left out, where there are too many", async () => {
  const everywhere = await startReplica(ANSWER, "0.0.0.0");
  const [, port] = everywhere.address.split(":");
  const name = `consoles.example:${port}`;
  const { replicas } = await makeWatch([name], () => addressesIn(1, 100)).watch.view();
  assert.equal(replicas.filter(({ now }) => now !== null).length, 64);
  assert.equal(replicas.find(({ address }) => address === name)?.problem, "36 more replicas: 64 are asked");
  await everywhere.stop();
});
