/**
 * What an answer from a zone costs beside one from the cache, before any socket is touched: both from the octets of a query to the reply, in
 * turns within one run, so that what counts is the ratio. Run with `node bench/in-process/zone-lookup.ts [RECORDS]`.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Handler, Next, Outcome } from "../../src/plugin/index.ts";
import { Query } from "../../src/plugin/index.ts";
import { makeTestQuery, PluginTest } from "../../src/plugin/testing.ts";
import cache from "../../src/plugins/cache/index.ts";
import file from "../../src/plugins/file/index.ts";

const RECORDS = Number(process.argv[2] ?? 100_000);
const ROUNDS = 15;
/** Queries of a round. */
const BATCH = 50_000;
/** Names that are asked for. */
const ASKED = Math.min(RECORDS, 100_000);

const nobody: Next = () => {
  throw new Error("nothing was to go on");
};

const nameOf = (index: number): string => `host-${index}.example.org.`;

const folder = mkdtempSync(join(tmpdir(), "portolan-lookup-"));
try {
  const lines = [
    "$ORIGIN example.org.",
    "$TTL 3600",
    "@ SOA ns h 1 3600 3600 86400 300",
    "@ NS ns",
    "ns A 192.0.2.1",
  ];
  for (let index = 0; index < RECORDS; index++)
    lines.push(`host-${index} A 10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`);
  writeFileSync(join(folder, "zone"), `${lines.join("\n")}\n`);
  const zone = PluginTest.of(file, `file ${join(folder, "zone")} example.org`);
  await zone.start();
  const kept = PluginTest.of(cache, `cache {\n success ${4 * ASKED}\n}`);
  const model = zone.query({ name: "." });
  const packets = Array.from({ length: ASKED }, (_, index) => {
    const place = Math.floor((index * 2_654_435_761) % RECORDS);
    return makeTestQuery({ name: nameOf(place), edns: { udpSize: 1232 } }).packet;
  });
  const read = (packet: Uint8Array): Query => {
    const query = Query.read(packet, packet.length, model);
    if (query === undefined) throw new Error("no query");
    return query;
  };
  const fromZone = handleOf(zone);
  const fromCache = handleOf(kept);
  // The cache has what the zone says: the same records in both.
  for (const packet of packets) await fromCache(read(packet), (query) => fromZone(query, nobody));
  let turn = 0;
  const round = (handle: Handler): number => {
    const begun = performance.now();
    for (let count = 0; count < BATCH; count++) {
      turn = (turn + 7_919) % ASKED;
      sent(handle(read(packets[turn] ?? new Uint8Array(0)), nobody));
    }
    return ((performance.now() - begun) * 1_000) / BATCH;
  };
  let [zoneTime, cacheTime] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let count = 0; count < ROUNDS; count++) {
    cacheTime = Math.min(cacheTime, round(fromCache));
    zoneTime = Math.min(zoneTime, round(fromZone));
  }
  const ratio = (zoneTime / cacheTime).toFixed(2);
  process.stdout.write(
    `${RECORDS} records, ${ASKED} names: zone ${zoneTime.toFixed(2)} µs, cache ${cacheTime.toFixed(2)} µs, ratio ${ratio}\n`,
  );
  await zone.stop();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function handleOf(running: { readonly instances: readonly { readonly handle?: Handler }[] }): Handler {
  const handle = running.instances[0]?.handle;
  if (handle === undefined) throw new Error("nothing is handled");
  return handle;
}

/** The listener's work on a reply once its octets are written. */
function sent(outcome: Outcome | Promise<Outcome>): void {
  if (outcome instanceof Promise || outcome.kind !== "reply") throw new Error("no reply");
  outcome.release();
}
