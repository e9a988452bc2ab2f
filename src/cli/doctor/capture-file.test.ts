/** Damaged captures: each is refused with its line, or judged. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { diagnose } from "../../console/doctor/diagnose.ts";
import { FlagError } from "../flag-table.ts";
import { CaptureBuilder, CaptureRecorder, readCapture } from "./capture-file.ts";
import { reportText } from "./report.ts";

const FACTS = {
  now: {
    ...{ time: 0, version: "0.1.0", hostname: "coredns-0", startedAt: 0, threads: 1, rate: 10 },
    minute: { queries: 0, rcodes: {}, types: {}, hitRatio: null, p50: null, p90: null, p99: null },
    upstreams: [
      {
        ...{ plugin: "forward", address: "10.0.0.53:53", exchanges: 100, errors: 50, mean: 200, p99: 8 },
        ...{ failedChecks: 3, discarded: 9 },
      },
    ],
    clusters: [{ domain: "cluster.local", awaited: [], services: 2, families: ["IPv4"], age: 1, state: [] }],
    memory: { resident: 60_000_000, heap: 0, limit: null },
    ...{ pauses: { p99: 0, longest: 0 }, shed: 0, sampling: { interval: 1, missed: 0 } },
  },
  machine: {
    finished: 10_000,
    memory: { resident: 60_000_000, peak: 80_000_000, limit: 64_000_000 },
    udp: { received: 10_000, receiveBufferErrors: 0, sendBufferErrors: 0, socketDrops: 100 },
    conntrack: { entries: 990, most: 1_000, dropped: 5, droppedEarly: 5, notInserted: 5 },
  },
  caches: [{ zones: ["."], entries: 1, octets: 0, maxOctets: 100_000_000 }],
  configuration: {
    file: "Corefile",
    text: ".:53 {\n health\n forward . 10.0.0.53\n}\n",
    blocks: [
      {
        ...{ keys: [".:53"], file: "Corefile", line: 1, listeners: ["dns://:53"] },
        chain: [{ name: "forward", handles: true }],
      },
    ],
  },
};

const PROBE = { path: "/health", period: 10, failures: 3, timeout: 1 };

/** Faulty in many ways, so that every rule reports something. */
const LINES: readonly object[] = [
  { facts: FACTS },
  ...Array.from({ length: 120 }, (_, n) => ({
    ...{ time: n, name: n % 2 === 0 ? "api.example.com." : "api.example.com.shop.svc.cluster.local." },
    ...{ type: n % 3 === 0 ? "AAAA" : "A", rcode: n % 2 === 0 ? "NOERROR" : "NXDOMAIN" },
    ...{ client: "10.1.0.1", workload: "shop/web-6d4cf56db6-x2x5c", duration: 0.1, plugin: "forward" },
    ...{
      transport: "udp",
      port: 4_000,
      id: n >> 2,
      listener: "dns://:53",
      answers: 1,
      ttl: 1,
      size: 80,
      weight: 1,
    },
  })),
  { facts: FACTS },
  {
    impossible: {
      name: "x.invalid.",
      rcode: "NOERROR",
      answer: ["x.invalid. 1 IN A 192.0.2.1"],
      plugin: "forward",
    },
  },
  {
    pod: {
      ...{ owner: "deployment/coredns", namespace: "kube-system", gracePeriod: 5, preStopSleep: 0 },
      ...{ container: "coredns", readiness: PROBE, liveness: PROBE, memoryLimit: 64_000_000 },
    },
  },
];

const ODD = [
  null,
  "",
  0,
  -1,
  1e308,
  "<x>",
  [],
  {},
  [null],
  [{}],
  true,
  "\u0000\u001b[31m",
  "9".repeat(2_000),
];

/** @returns the object with one value, chosen by the number, replaced or removed */
function changed(value: unknown, pick: number, odd: unknown): unknown {
  let left = pick;
  const walk = (each: unknown): unknown => {
    if (left-- === 0) return odd;
    if (Array.isArray(each)) return each.map(walk);
    if (typeof each !== "object" || each === null) return each;
    return Object.fromEntries(Object.entries(each).map(([key, inner]) => [key, walk(inner)]));
  };
  return walk(value);
}

async function judge(lines: readonly unknown[]): Promise<number> {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    for (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`);
  }
  const builder = new CaptureBuilder();
  await readCapture(chunks(), "capture", (line) => builder.add(line));
  const diagnosis = diagnose(builder.capture());
  reportText(diagnosis, false);
  return diagnosis.findings.length;
}

test("a capture with every kind of fault is judged", async () => {
  assert.ok((await judge(LINES)) >= 8);
});

test("a changed capture is judged, or refused with its line", async () => {
  const anyLine = fc.oneof(fc.constantFrom(0, 1, LINES.length - 3, LINES.length - 2, LINES.length - 1));
  await fc.assert(
    fc.asyncProperty(anyLine, fc.nat(90), fc.constantFrom(...ODD, undefined), async (at, pick, odd) => {
      const lines = LINES.map((line, index) => (index === at ? changed(line, pick, odd) : line));
      try {
        await judge(lines);
      } catch (error) {
        assert.ok(error instanceof FlagError, String(error));
        assert.match(error.message, /^capture:\d+: neither a query nor facts about a server/);
      }
    }),
    { numRuns: 150 },
  );
});

test("a byte order mark is skipped", async () => {
  let facts = 0;
  async function* chunks(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(`\ufeff${JSON.stringify({ facts: FACTS })}\r\n`);
  }
  await readCapture(chunks(), "capture", () => facts++);
  assert.equal(facts, 1);
});

test("a file is replaced when there is something to write, and not before", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-capture-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "capture");
  writeFileSync(file, "of yesterday\n");
  new CaptureRecorder(file).close();
  assert.equal(readFileSync(file, "utf8"), "of yesterday\n");
  const recorder = new CaptureRecorder(file);
  recorder.add({ facts: FACTS });
  recorder.close();
  assert.equal(readFileSync(file, "utf8"), `${JSON.stringify({ facts: FACTS })}\n`);
});
