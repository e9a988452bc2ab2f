/**
 * The stream of finished queries when more arrive than a page can show: nothing grows, and skipped queries are
 * counted.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import type { MachineView, NowView, QueryRow, WhoView } from "../../src/console/api-types.ts";
import { dnsperf } from "../support/dnsperf.ts";
import { Portolan } from "../support/portolan.ts";

const NAMES = 2_000;
const MEBIBYTE = 2 ** 20;

test("a flood is sampled, counted in full, and takes no memory", {
  skip: skipWithout("dnsperf"),
}, async () => {
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")}
    prometheus 127.0.0.1:${port("metrics")}
    cache 3600
    template IN A example.org {
        answer "{{ .Name }} 3600 IN A 192.0.2.1"
    }
}
`,
  );
  const base = `http://127.0.0.1:${server.portOf("console")}/api/v1`;
  const get = async <T>(path: string): Promise<T> => (await fetch(`${base}/${path}`)).json() as Promise<T>;
  const questions = Array.from({ length: NAMES }, (_, n) => `n${n}.example.org A`);
  const load = () => dnsperf(server, { questions, seconds: 2, clients: 8 });

  // Some look on and read, one never reads what is sent.
  const abandoned = new AbortController();
  await fetch(`${base}/events`, { signal: abandoned.signal });
  let read = 0;
  for (let count = 0; count < 3; count++) {
    const { body } = await fetch(`${base}/events?streams=queries`, { signal: abandoned.signal });
    body
      ?.pipeTo(
        new WritableStream<Uint8Array>({
          write: (octets) => {
            read += octets.length;
          },
        }),
      )
      .catch(() => undefined);
  }
  const first = await load();
  const before = server.residentMemory;
  const second = await load();
  const growth = server.residentMemory - before;
  assert.ok(growth < 32 * MEBIBYTE, `${growth} octets more`);

  const completed = first.completed + second.completed;
  const { finished } = await get<MachineView>("machine");
  assert.ok(finished >= completed, `${finished} of ${completed}`);
  const now = await settled(() => get<NowView>("now"), completed);
  const { missed } = now.sampling;
  // A sample represents the queries that are left out: the reported total equals the answered queries.
  const told = now.minute.queries + missed;
  assert.ok(Math.abs(told - finished) <= 0.05 * finished, `${now.minute.queries} + ${missed} of ${finished}`);
  const who = await get<WhoView>("who?rows=1000");
  assert.ok(who.names.length <= 512, "names are bounded");
  const { queries } = await get<{ queries: QueryRow[] }>("queries?rows=1000");
  assert.ok(
    queries.some(({ weight }) => weight > 1),
    "some stand for others",
  );
  assert.ok(read > 0, "those that read get something");
  const metrics = await (await fetch(`http://127.0.0.1:${server.portOf("metrics")}/metrics`)).text();
  const counter = (name: string) =>
    Number(new RegExp(`^portolan_console_${name}_total (\\S+)$`, "m").exec(metrics)?.[1]);
  // More queries arrive than are sent to any client.
  assert.ok(counter("dropped_rows") > 0);
  assert.ok(counter("missed_queries") >= 0);
  abandoned.abort();
});

/** Asks until what was finished has been looked at: four times a second. */
async function settled(ask: () => Promise<NowView>, completed: number): Promise<NowView> {
  const signal = AbortSignal.timeout(10_000);
  for (;;) {
    const now = await ask();
    if (now.minute.queries + now.sampling.missed >= 0.96 * completed || signal.aborted) return now;
  }
}
