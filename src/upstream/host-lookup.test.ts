import assert from "node:assert/strict";
import { afterEach, it } from "node:test";
import { Name } from "../dns/name.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { TimeoutWheel } from "../lib/time/timeout-wheel.ts";
import { UpstreamMetrics } from "./exchange/upstream-metrics.ts";
import { type Script, ScriptedServer, SILENT } from "./fixtures/scripted-server.ts";
import { TRUE_RANDOM } from "./fixtures/test-request.ts";
import { type HostLookup, lookupThrough, systemLookup } from "./host-lookup.ts";
import { UdpExchange } from "./udp/udp-exchange.ts";

const HOST = Name.parse("dns.example.org");
const clock = new FakeClock();
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function server(script: Script): Promise<ScriptedServer> {
  const started = await ScriptedServer.start(script);
  cleanups.push(() => started.stop());
  return started;
}

function through(...servers: readonly ScriptedServer[]): HostLookup {
  const metrics = new UpstreamMetrics(new MetricsRegistry(), "forward");
  return lookupThrough(
    servers.map(({ address }) => {
      const exchange = new UdpExchange({
        remote: address,
        clock,
        wheel: new TimeoutWheel(clock, 50),
        random: TRUE_RANDOM,
        metrics: metrics.exchange(address.text, "udp"),
        expire: 10_000,
        maxAge: 0,
      });
      cleanups.push(() => exchange.close());
      return exchange;
    }),
  );
}

const both: Script = (asked) => {
  const six = asked.message.questions[0]?.type === 28;
  asked.answer({
    answer: [
      `${asked.name} 60 IN CNAME ns.example.net.`,
      six ? "ns.example.net. 60 IN AAAA 2001:db8::53" : "ns.example.net. 60 IN A 192.0.2.53",
    ],
  });
};

it("returns IPv4 addresses first, also through aliases", async () => {
  assert.deepEqual(await through(await server(both))(HOST), ["192.0.2.53", "2001:db8::53"]);
});

it("asks the next server if one does not answer, or answers with an error", async () => {
  const silent = await server(SILENT);
  const refusing = await server((asked) => asked.answer({ rcode: 5 }));
  const addresses = through(silent, refusing, await server(both))(HOST);
  for (let type = 1; type <= 2; type++) {
    await silent.receives(type);
    clock.advance(2_101);
  }
  assert.deepEqual(await addresses, ["192.0.2.53", "2001:db8::53"]);
});

it("one family is enough", async () => {
  const four = await server((asked) => {
    if (asked.message.questions[0]?.type === 28) asked.answer({ rcode: 3 });
    else both(asked);
  });
  assert.deepEqual(await through(four)(HOST), ["192.0.2.53"]);
});

it("says why there is no address", async () => {
  const missing = await server((asked) => asked.answer({ rcode: 3 }));
  await assert.rejects(
    through(missing)(HOST),
    /^Error: A: the server answered NXDOMAIN; AAAA: the server answered NXDOMAIN$/,
  );
  const empty = await server((asked) => asked.answer());
  await assert.rejects(through(empty)(HOST), /^Error: the name has no addresses$/);
  const other = await server((asked) => asked.answer({ message: { questions: [] } }));
  const lookup = through(other)(HOST);
  lookup.catch(() => undefined);
  for (let type = 1; type <= 2; type++) {
    await other.receives(type);
    clock.advance(2_101);
  }
  await assert.rejects(lookup, /i\/o timeout/);
});

it("the machine resolves its own name", async () => {
  const addresses = await systemLookup(Name.parse("localhost"));
  assert.ok(addresses.includes("127.0.0.1") || addresses.includes("::1"), addresses.join());
});
