/**
 * What a cached answer costs before any socket is touched: from the octets of a query to the reply that is ready to be written, in
 * one thread. Run with `node bench/in-process/cache-hit.ts`.
 */
import { bench, do_not_optimize, run } from "mitata";
import type { Handler, Next, Outcome } from "../../src/plugin/index.ts";
import { Query } from "../../src/plugin/index.ts";
import { makeTestQuery, PluginTest, records } from "../../src/plugin/testing.ts";
import cache from "../../src/plugins/cache/index.ts";

for (const count of [1_000, 100_000]) {
  const { packets, handle, next, read } = filledCache(count);
  const queries = packets.map(read);
  const order = shuffledIndices(count);
  let turn = 0;
  const pick = (): number => {
    turn = turn + 1 === count ? 0 : turn + 1;
    return order[turn] ?? 0;
  };
  bench(`${count} names: query read`, () => {
    do_not_optimize(read(packets[pick()] ?? NOTHING));
  });
  bench(`${count} names: query read and answered`, () => {
    sent(handle(read(packets[pick()] ?? NOTHING), next));
  });
  bench(`${count} names: answered`, () => {
    const query = queries[pick()];
    if (query !== undefined) sent(handle(query, next));
  });
}

await run();

/** The listener's work on a reply once its octets are written. */
function sent(outcome: Outcome | Promise<Outcome>): void {
  do_not_optimize(outcome);
  if (!(outcome instanceof Promise) && outcome.kind === "reply") outcome.release();
}

/** A cache that holds an answer for each of `count` queries. */
function filledCache(count: number): {
  packets: Uint8Array[];
  handle: Handler;
  next: Next;
  read: (packet: Uint8Array) => Query;
} {
  const running = PluginTest.of(cache, `cache {\n success ${2 * count}\n}`);
  const [instance] = running.instances;
  const handle = instance?.handle;
  if (handle === undefined) throw new Error("the cache handles nothing");
  const [answer] = records("a. 3600 IN A 192.0.2.1");
  if (answer === undefined) throw new Error("no record");
  let misses = 0;
  const next: Next = (query) => {
    misses++;
    return query.reply({ answer: [{ ...answer, name: query.name }] });
  };
  const model = running.query({ name: "." });
  const read = (packet: Uint8Array): Query => {
    const query = Query.read(packet, packet.length, model);
    if (query === undefined) throw new Error("no query");
    return query;
  };
  const packets: Uint8Array[] = [];
  for (let index = 0; index < count; index++) {
    const name = `service-${index}.namespace-${index % 50}.svc.cluster.local.`;
    const query = makeTestQuery({ name, edns: { udpSize: 1232 } });
    packets.push(query.packet);
    void handle(query, next);
  }
  for (const packet of packets) void handle(read(packet), next);
  if (misses !== count) throw new Error(`${misses} misses for ${count} names`);
  return { packets, handle, next, read };
}

/** The same order in each run, and one that a processor cannot foresee. */
function shuffledIndices(count: number): Uint32Array {
  const indices = Uint32Array.from({ length: count }, (_, index) => index);
  let state = 1;
  for (let last = count - 1; last > 0; last--) {
    state = Math.imul(state, 48271) & 0x7fff_ffff;
    const other = state % (last + 1);
    const kept = indices[last] ?? 0;
    indices[last] = indices[other] ?? 0;
    indices[other] = kept;
  }
  return indices;
}

const NOTHING = new Uint8Array(0);
