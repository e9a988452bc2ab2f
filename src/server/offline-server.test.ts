import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryHost } from "../corefile/host.ts";
import { Name } from "../dns/name.ts";
import { Flag, Rcode } from "../dns/numbers.ts";
import { formatData } from "../dns/resource-record.ts";
import { RecordType } from "../dns/type-names.ts";
import { MemoryLog } from "../lib/logging/log.ts";
import { FakeClock } from "../lib/time/clock.ts";
import { ConfigurationError } from "./configuration/configuration.ts";
import { withArguments, withLines, withSubstitutes } from "./configuration/directive-substitutes.ts";
import { systemRandom, thisMachine } from "./configuration/machine.ts";
import { PluginRegistry } from "./configuration/plugin-registry.ts";
import { TraceRecorder } from "./explaining/trace-recorder.ts";
import { OfflineServer } from "./offline-server.ts";

const builtIn = await PluginRegistry.builtIn();

function start(text: string, registry = builtIn): Promise<OfflineServer> {
  return OfflineServer.start({
    source: { text, file: "Corefile" },
    registry,
    host: memoryHost(),
    machine: thisMachine({}),
    clock: new FakeClock(),
    random: systemRandom(),
    log: new MemoryLog(),
  });
}

const HOSTS = `
. {
    errors
    health 127.0.0.1:0
    hosts /does/not/exist {
        192.0.2.7 app.example.org
        fallthrough
    }
}
example.net:1053 {
    local
}
`;

test("answers without listening, and the trace knows block and plugins", async () => {
  const server = await start(HOSTS);
  try {
    assert.deepEqual(server.listeners, ["dns://:53", "dns://:1053"]);
    const question = { name: Name.parse("App.example.org."), type: RecordType.A };
    assert.deepEqual(server.listenersFor(question), ["dns://:53"]);
    assert.deepEqual(server.listenersFor({ ...question, name: Name.parse("a.example.net.") }), [
      "dns://:1053",
      "dns://:53",
    ]);
    const trace = new TraceRecorder(new FakeClock());
    const { message, outcome } = await server.ask("dns://:53", question, trace);
    assert.equal(message?.rcode, Rcode.NOERROR);
    assert.ok(((message?.flags ?? 0) & Flag.RD) !== 0);
    assert.deepEqual(message?.answer.map(formatData), ["192.0.2.7"]);
    assert.equal(outcome.kind === "reply" ? outcome.plugin : undefined, "hosts");
    assert.deepEqual(
      trace.visits.map(({ plugin }) => plugin),
      ["errors", "hosts"],
    );
    const [lookup] = trace.entries;
    assert.ok(lookup !== undefined && "block" in lookup);
    assert.equal(lookup.block, ".:53, Corefile:2");
  } finally {
    await server.stop();
  }
});

test("a question that no block takes is refused", async () => {
  const server = await start(HOSTS);
  const trace = new TraceRecorder(new FakeClock());
  const question = { name: Name.parse("example.com."), type: RecordType.A };
  const { message } = await server.ask("dns://:1053", question, trace);
  await server.stop();
  assert.equal(message?.rcode, Rcode.REFUSED);
  const [lookup] = trace.entries;
  assert.ok(lookup !== undefined && "block" in lookup);
  assert.equal(lookup.block, undefined);
});

test("a Corefile that cannot be run is refused with all its faults", async () => {
  await assert.rejects(start(". {\n    hots\n    cash\n}\n"), (error) => {
    return error instanceof ConfigurationError && error.diagnostics.length === 2;
  });
});

test("directives can be read as if something else stood there", async () => {
  const registry = withSubstitutes(
    builtIn,
    new Map([
      [
        "hosts",
        (directive) =>
          withLines(withArguments(directive, ["/nowhere/either"]), ["fallthrough"], [["ttl", "11"]]),
      ],
    ]),
  );
  const server = await start(HOSTS, registry);
  const ask = (name: string) => server.ask("dns://:53", { name: Name.parse(name), type: RecordType.A });
  const known = await ask("app.example.org.");
  const unknown = await ask("web.example.org.");
  await server.stop();
  assert.equal(known.message?.answer[0]?.ttl, 11);
  // Without fallthrough hosts itself says that there is no such name.
  assert.equal(unknown.outcome.kind === "dropped" ? undefined : unknown.outcome.plugin, "hosts");
});
