import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryHost } from "../../corefile/host.ts";
import { Name } from "../../dns/name.ts";
import { RecordType } from "../../dns/type-names.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import type { Next } from "../../plugin/chain/handler.ts";
import { ExplainError } from "../../plugin/contract/explanation.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import { readConfiguration } from "../configuration/configuration.ts";
import { thisMachine } from "../configuration/machine.ts";
import { PluginRegistry } from "../configuration/plugin-registry.ts";
import { DnsListener } from "../serving/dns-listener.ts";
import { InFlight } from "../serving/in-flight.ts";
import { RouteTable } from "../serving/route-table.ts";
import { explainWith } from "./explain.ts";
import { InProcessClient } from "./in-process-client.ts";

const registry = await PluginRegistry.builtIn();
const clock = new FakeClock();
const inFlight = new InFlight();

/** A client of one listener that has this chain for everything. */
async function clientOf(chain: Next): Promise<InProcessClient> {
  const source = { text: ". {\n whoami\n}", file: "Corefile" };
  const machine = thisMachine({});
  const configuration = await readConfiguration(source, {
    host: memoryHost(),
    registry,
    machine,
    defaultPort: 53,
  });
  const counter = new MetricsRegistry().counter({ name: "test_total", help: "test", labels: [] }).slot();
  const routes = new RouteTable([{ zone: Name.root, chain, filters: [], metadata: undefined }]);
  const listener = new DnsListener({
    label: "dns://:53",
    service: { routes, allClasses: false, observer: undefined, inFlight },
    clock,
    counters: { shed: counter, rejected: counter, irregular: counter, ignored: counter },
    onError: (error) => assert.fail(String(error)),
  });
  return new InProcessClient(configuration, [listener], clock);
}

const SERVER = { version: "Portolan-0", threads: 1, configuration: "" };
const QUESTION = { name: "a.example.", type: RecordType.A };

test("a question that takes too long is told as far as it has come", async () => {
  const answer = Promise.withResolvers<Outcome>();
  const client = await clientOf((query) => {
    query.trace?.enter("forward", query);
    query.trace?.note("asks 192.0.2.53:53 over udp");
    assert.equal(query.deadline, clock.now() + 8_000);
    assert.equal(query.trace?.leavesNoMark, true);
    return answer.promise;
  });
  const explaining = explainWith(client, QUESTION, { clock, timeout: 8_000, server: SERVER });
  await clock.settle(8_000);
  const { message, error, steps, milliseconds } = await explaining;
  assert.deepEqual([message, milliseconds], [undefined, 8_000]);
  assert.match(error ?? "", /^no answer within 8 s/);
  assert.deepEqual(
    steps.map(({ plugin, decision, notes }) => [plugin, decision, notes.map(({ text }) => text)]),
    [["forward", "has not answered", ["asks 192.0.2.53:53 over udp"]]],
  );
  // A reload waits until it is over.
  assert.equal(inFlight.count, 1);
  answer.resolve({ kind: "dropped" });
  await inFlight.drained();
});

test("what had no part in the answer is shown as such, and its time does not count", async () => {
  const client = await clientOf((query) => {
    const { trace } = query;
    trace?.enter("cache", query);
    trace?.note("cached 3 s ago");
    trace?.aside?.("behind the cache: what would be answered now");
    trace?.enter("errors", query);
    trace?.enter("forward", query);
    clock.advance(250);
    trace?.leave("forward", "failed 2");
    trace?.leave("errors", "failed 2");
    const reply = query.reply({ rcode: 3 });
    trace?.leave("cache", "reply 3");
    return reply;
  });
  const { steps, milliseconds, plugin } = await explainWith(client, QUESTION, { clock, server: SERVER });
  assert.equal(milliseconds, 0);
  assert.notEqual(plugin, "forward");
  assert.deepEqual(
    steps.map(({ depth, plugin, decision, milliseconds }) => [depth, plugin, decision, milliseconds]),
    [
      [0, "cache", "answers NXDOMAIN", 0],
      [1, "aside", "behind the cache: what would be answered now", undefined],
      [1, "errors", "passes on", 0],
      [1, "forward", "fails with SERVFAIL", 250],
    ],
  );
});

test("flags, class and transport of the client are those of the query", async () => {
  const client = await clientOf((query) => {
    assert.deepEqual(
      [
        query.recursionDesired,
        query.checkingDisabled,
        query.dnssecOk,
        query.overStream,
        query.client.address,
      ],
      [false, true, true, true, "2001:db8::1"],
    );
    return query.reply();
  });
  const explanation = await explainWith(
    client,
    { ...QUESTION, flags: ["cd", "do"], transport: "tcp", client: "2001:db8::1" },
    { clock },
  );
  assert.deepEqual([explanation.message?.rcode, explanation.server], ["NOERROR", undefined]);
  assert.deepEqual(explanation.flags, ["cd", "do"]);
  const chaos = await explainWith(client, { ...QUESTION, class: 3 }, { clock });
  assert.deepEqual([chaos.class, chaos.message?.rcode], ["CH", "REFUSED"]);
});

test("refuses what cannot be asked", async () => {
  const client = await clientOf((query) => query.reply());
  for (const [question, message] of [
    [{ ...QUESTION, name: "a..b" }, /^a\.\.b\.? is not a domain name: empty label$/],
    [{ ...QUESTION, client: "10.0.0" }, /10\.0\.0 is not an IP address/],
    [{ ...QUESTION, listener: "dns://:5" }, /listens at dns:\/\/:53/],
  ] as const) {
    await assert.rejects(
      explainWith(client, question, { clock }),
      (error) => error instanceof ExplainError && message.test(error.message),
    );
  }
});
