/** Captures that are far longer than what is kept of them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { QueryRow } from "../api-types.ts";
import { diagnose } from "./diagnose.ts";
import { DistinctNames } from "./name-set.ts";
import { QueryGroups } from "./query-groups.ts";
import { Repeats } from "./repeats.ts";
import { TrafficCounter } from "./traffic-counter.ts";

const POD = { client: "10.1.0.1", workload: "shop/web-6d4cf56db6-x2x5c" };

function row(part: Partial<QueryRow>): QueryRow {
  return {
    ...{ time: 0, name: "web.shop.svc.cluster.local.", type: "A", rcode: "NOERROR", client: "10.1.0.2" },
    ...{ duration: 0.1, plugin: "cache", transport: "udp", port: 4_000, id: 0, listener: "dns://:53" },
    ...{ answers: 1, size: 80, weight: 1 },
    ...part,
  };
}

/** Numbers below one that look like chance and are always the same. */
function* chances(): Generator<number, never> {
  for (let state = 1; ; ) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    yield (((state >>> 8) ^ (state >>> 20)) % 1000) / 1000;
  }
}

describe("queries of a kind, once there are more than fit", () => {
  const CAPACITY = 1_000;
  const groups = new QueryGroups(CAPACITY);
  const chance = chances();
  const expected = { total: 0, aaaa: 0, denied: 0, batch: 0, heavy: 0 };
  for (let n = 0; n < 60_000; n++) {
    const isHeavy = chance.next().value < 0.2;
    // In the order in which a C library asks: every second one of a kind.
    const type = n % 2 === 0 ? "A" : "AAAA";
    const rcode = chance.next().value < 0.3 ? "NXDOMAIN" : "NOERROR";
    const isBatch = chance.next().value < 0.05;
    const name = isHeavy ? "heavy.example." : `n${n}.example.`;
    const workload = isBatch ? "batch/job-0" : "shop/web-0";
    groups.add(row({ name, type: isHeavy ? "A" : type, rcode, workload }), name);
    expected.total++;
    if (isHeavy) expected.heavy++;
    else if (type === "AAAA") expected.aaaa++;
    if (rcode === "NXDOMAIN") expected.denied++;
    if (isBatch) expected.batch++;
  }
  const all = [...groups];
  const sum = (part: typeof all): number => part.reduce((total, { weight }) => total + weight, 0);
  const isNear = (actual: number, wanted: number, share: number): void =>
    assert.ok(Math.abs(actual - wanted) <= share * wanted, `${actual} in place of ${wanted}`);

  test("are kept in a table of fixed size", () => {
    assert.ok(groups.size <= CAPACITY && groups.grain > 10, `${groups.size} ${groups.grain}`);
  });

  test("add up to as many as there were", () => {
    isNear(sum(all), expected.total, 0.01);
    isNear(sum(all.filter(({ type }) => type === "AAAA")), expected.aaaa, 0.15);
    isNear(sum(all.filter(({ rcode }) => rcode === "NXDOMAIN")), expected.denied, 0.15);
    isNear(sum(all.filter(({ namespace }) => namespace === "batch")), expected.batch, 0.4);
  });

  test("are as good as exact where they are many", () => {
    isNear(sum(all.filter(({ name }) => name === "heavy.example.")), expected.heavy, 0.001);
  });
});

test("a flood of random names hides no name that many ask for, and makes none up", () => {
  const traffic = new TrafficCounter();
  for (let n = 0; n < 120_000; n++) {
    const name = n % 10 === 0 ? "redsi.data.svc.cluster.local." : `r${n}.victim.example.`;
    traffic.add(row({ name, rcode: "NXDOMAIN", answers: 0, time: n, id: n, workload: "batch/nightly-0" }));
  }
  const { findings, observed } = diagnose({
    ...{ traffic, first: undefined, last: undefined, pod: undefined, impossible: undefined, failures: [] },
  });
  assert.deepEqual([observed.queries, observed.rows, observed.seconds], [120_000, 120_000, 120]);
  assert.deepEqual(
    findings.map(({ code, figures }) => [code, figures.absent, figures.names]),
    [["absent-names", 12_000, 1]],
  );
});

test("names that were added are found, and hardly any other", () => {
  const names = new DistinctNames();
  assert.equal(names.has("a.example."), false);
  for (let n = 0; n < 50_000; n++) names.add(`n${n}.example.`);
  for (let n = 0; n < 50_000; n++) assert.ok(names.has(`n${n}.example.`));
  let wrong = 0;
  for (let n = 50_000; n < 100_000; n++) if (names.has(`n${n}.example.`)) wrong++;
  assert.ok(wrong < 10, `${wrong}`);
});

describe("repeats", () => {
  const SECOND = 1_000;

  test("are found among rows of several threads, which come out of order", () => {
    const repeats = new Repeats();
    repeats.add(row({ ...POD, time: 5 * SECOND, id: 7 }));
    repeats.add(row({ ...POD, time: 0, rcode: "SERVFAIL", id: 6 }));
    assert.deepEqual([...repeats.finish()], [["shop/deployment/web", { retries: 1, lost: 0 }]]);
  });

  test("are no longer repeats once a resolver has given up", () => {
    const repeats = new Repeats();
    for (const time of [0, 9 * SECOND, 30 * SECOND]) repeats.add(row({ ...POD, time }));
    assert.deepEqual([...repeats.finish()], [["shop/deployment/web", { retries: 1, lost: 1 }]]);
  });

  test("of many clients leave room for those who repeat the most", () => {
    const repeats = new Repeats();
    for (let n = 0; n < 20_000; n++) {
      const client = { client: `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}` };
      for (const time of [n, n + 0.5]) repeats.add(row({ ...client, time, id: n }));
      repeats.add(row({ ...POD, time: n, id: n }));
      repeats.add(row({ ...POD, time: n + 0.5, id: n }));
    }
    const clients = repeats.finish();
    assert.equal(clients.get("shop/deployment/web")?.retries, 20_000);
    assert.ok(clients.size <= 4_096, `${clients.size}`);
  });
});
