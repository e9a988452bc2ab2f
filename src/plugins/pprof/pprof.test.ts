import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { SystemClock } from "../../lib/time/clock.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import pprof from "./index.ts";
import { encodeProfile } from "./profile-writer.ts";

/** The fields of a protocol buffer message: numbers, and raw bytes. */
function fields(octets: Uint8Array): Map<number, (number | Uint8Array)[]> {
  const found = new Map<number, (number | Uint8Array)[]>();
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const octet = octets[at++] ?? 0;
      value += (octet & 127) * 2 ** shift;
      if (octet < 128) return value;
    }
  };
  while (at < octets.length) {
    const tag = varint();
    const length = varint();
    const isOctets = (tag & 7) === 2;
    const value = isOctets ? octets.subarray(at, at + length) : length;
    if (isOctets) at += length;
    found.set(tag >> 3, [...(found.get(tag >> 3) ?? []), value]);
  }
  return found;
}

function strings(profile: Map<number, (number | Uint8Array)[]>): string[] {
  return (profile.get(6) ?? []).map((text) => Buffer.from(text as Uint8Array).toString());
}

async function withServer(run: (get: (path: string) => Promise<Response>) => Promise<void>): Promise<void> {
  const running = PluginTest.of(pprof, "pprof", { site: { clock: new SystemClock() } });
  await running.start();
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://localhost");
    const handler = running.http.get(`localhost:6053${pathname}`);
    if (handler === undefined) response.writeHead(404).end();
    else handler(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await run((path) => fetch(`http://127.0.0.1:${port}${path}`));
  } finally {
    await running.stop();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

describe("over HTTP", () => {
  test("a CPU profile names the functions that ran", async () => {
    await withServer(async (get) => {
      const response = get("/debug/pprof/profile?seconds=0.3");
      const end = performance.now() + 250;
      await new Promise<void>((resolve) => {
        const work = () => {
          spendTimeConspicuously();
          if (performance.now() < end) setImmediate(work);
          else resolve();
        };
        work();
      });
      const body = await (await response).arrayBuffer();
      const profile = fields(gunzipSync(body));
      const table = strings(profile);
      assert.equal(table[0], "");
      assert.ok(table.includes("nanoseconds"));
      assert.ok(table.includes("spendTimeConspicuously"), table.join(" "));
      assert.ok((profile.get(2) ?? []).length > 0);
      assert.equal(profile.get(12)?.[0], 10_000_000);
    });
  });

  test("one CPU profile at a time", async () => {
    await withServer(async (get) => {
      const one = get("/debug/pprof/profile?seconds=1");
      let other: Response;
      // Whichever comes first: a profile in progress rejects the next.
      do other = await get("/debug/pprof/profile?seconds=0.01");
      while (other.status === 200);
      assert.equal(other.status, 500);
      assert.equal((await one).status, 200);
      assert.equal((await get("/debug/pprof/profile?seconds=0.01")).status, 200);
    });
  });

  for (const seconds of ["0", "-1", "601", "x"]) {
    test(`a profile of ${seconds} seconds is refused`, async () => {
      await withServer(async (get) =>
        assert.equal((await get(`/debug/pprof/profile?seconds=${seconds}`)).status, 400),
      );
    });
  }

  test("the heap, the command line, and a page that lists them", async () => {
    await withServer(async (get) => {
      const heap = fields(gunzipSync(await (await get("/debug/pprof/heap")).arrayBuffer()));
      assert.ok(strings(heap).includes("inuse_space"));
      assert.match(await (await get("/debug/pprof/cmdline")).text(), /node/);
      const page = await get("/debug/pprof/");
      assert.match(page.headers.get("content-type") ?? "", /text\/html/);
      assert.match(await page.text(), /href="profile\?seconds=30"/);
    });
  });
});

test("samples refer to locations, and locations to functions, each written once", () => {
  const frame = (functionName: string) => ({ functionName, url: "file:///a.ts", lineNumber: 9 });
  const profile = fields(
    gunzipSync(
      encodeProfile({
        sampleTypes: [{ type: "samples", unit: "count" }],
        samples: [
          { stack: [frame("inner"), frame("outer")], values: [3] },
          { stack: [frame("outer")], values: [300] },
        ],
        periodType: { type: "cpu", unit: "nanoseconds" },
        period: 1,
        startedAt: 1_700_000_000_000,
        duration: 1_000,
      }),
    ),
  );
  assert.equal(profile.get(4)?.length, 2);
  assert.equal(profile.get(5)?.length, 2);
  const samples = (profile.get(2) ?? []).map((sample) => fields(sample as Uint8Array));
  assert.deepEqual(
    samples.map((sample) => Array.from(sample.get(1)?.[0] as Uint8Array)),
    [[1, 2], [2]],
  );
  assert.deepEqual(Array.from(samples[1]?.get(2)?.[0] as Uint8Array), [0xac, 0x02]);
  assert.equal(profile.get(9)?.[0], 1_700_000_000_000_000_000);
});

test("the address, and an option without an effect", () => {
  const running = PluginTest.of(pprof, "pprof 127.0.0.1:0 {\n block 5\n}");
  assert.match(running.warnings[0] ?? "", /'block' has no effect/);
});

for (const [text, message] of [
  ["pprof localhost", /'localhost' is not an address with a port/],
  ["pprof a:1 b:2", /after 'b:2'/],
  ["pprof {\n foo\n}", /unknown property 'foo'/],
  ["pprof {\n block x\n}", /'x' is not a whole number/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(pprof, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

function spendTimeConspicuously(): number {
  const end = performance.now() + 20;
  let sum = 0;
  while (performance.now() < end) sum += Math.sqrt(sum + 1);
  return sum;
}
