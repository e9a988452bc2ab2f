/** An abandoned query, whose client was dropped because too many waited, holds no resources. */
import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { DROPPED, type Outcome, type Query } from "../../plugin/index.ts";
import type { PluginTest } from "../../plugin/testing.ts";
import { HONEST, type Script, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { TcpExchange } from "../../upstream/tcp/tcp-exchange.ts";
import { UdpExchange } from "../../upstream/udp/udp-exchange.ts";
import { ForwardBench, forwarderOf, withShortAddress } from "./fixtures/forward-bench.ts";

const bench = new ForwardBench();
afterEach(() => bench.stop());

function ask(
  test: PluginTest<unknown>,
  transport: "udp" | "tcp",
): { query: Query; outcome: Promise<Outcome> } {
  const query = test.query({ name: "example.org.", transport });
  return { query, outcome: Promise.resolve(test.chain((asked) => asked.fail())(query)) };
}

describe("a query that is abandoned", () => {
  for (const transport of ["udp", "tcp"] as const) {
    it(`over ${transport} is dropped at once, and others are answered as before`, async () => {
      const server = await bench.server(SILENT);
      const test = await bench.start(`forward . ${server.text} {\nmax_concurrent 2\n}`);
      const [abandoned, other] = [ask(test, transport), ask(test, transport)];
      await server.receives(2);
      abandoned.query.abandon();
      assert.equal(await abandoned.outcome, DROPPED);
      assert.equal(abandoned.query.waiter, undefined);
      // The answer is too late for one query, and in time for the other.
      for (const asked of server.asked) HONEST(asked);
      const settled = await other.outcome;
      assert.equal(settled.kind, "reply");
      // Neither counts as in progress any more, and no time-out is left.
      server.script = HONEST;
      for (const { outcome } of [ask(test, transport), ask(test, transport)])
        assert.equal((await outcome).kind, "reply");
      const [upstream] = forwarderOf(test).upstreams;
      for (const exchange of [upstream?.datagram, upstream?.stream]) {
        assert.ok(exchange instanceof UdpExchange || exchange instanceof TcpExchange);
        assert.equal(exchange.pending, 0);
      }
    });
  }

  it("between two rounds is not sent again", async () => {
    const broken: Script = (asked) => asked.send(withShortAddress(asked));
    const server = await bench.server(broken);
    const test = await bench.start(`forward . ${server.text} {\nmax_fails 0\nmax_connect_attempts 0\n}`);
    const { query, outcome } = ask(test, "udp");
    await server.receives(2);
    // Two unusable answers, and then a pause: the second is read before this query's turn.
    const later = ask(test, "udp");
    await server.receives(4);
    query.abandon();
    assert.equal(await outcome, DROPPED);
    later.query.abandon();
    assert.equal(await later.outcome, DROPPED);
    const before = server.asked.length;
    await test.clock.settle(10_000);
    assert.equal(server.asked.length, before);
  });

  it("is not sent if it was abandoned before", async () => {
    const server = await bench.server(HONEST);
    const test = await bench.start(`forward . ${server.text}`);
    const query = test.query({ name: "example.org." });
    query.abandon();
    assert.equal(await test.chain((asked) => asked.fail())(query), DROPPED);
    assert.equal(server.asked.length, 0);
  });
});
