/** What `explain` tells of views and templates. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryHost } from "../../corefile/host.ts";
import { RecordType } from "../../dns/type-names.ts";
import { MemoryLog } from "../../lib/logging/log.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import type { Explanation } from "../../plugin/contract/explanation.ts";
import { systemRandom, thisMachine } from "../configuration/machine.ts";
import { PluginRegistry } from "../configuration/plugin-registry.ts";
import { OfflineServer } from "../offline-server.ts";

const COREFILE = `
example.org {
    view inside {
        expr incidr(client_ip(), '10.0.0.0/8') and type() == 'A'
    }
    template IN A {
        answer "{{ .Name }} 60 IN CNAME x.example.net."
    }
}
example.org {
    template IN A {
        match ^ftp
        fallthrough
    }
    template IN A {
        var shard len(name()) % 4
        expr proto() == 'tcp'
        fallthrough
    }
    whoami
}
example.net {
    template IN A {
        match ^x
        answer "{{ .Name }} 30 IN A 192.0.2.1"
    }
}
`;

/** Steps with their notes, a line each. */
async function explain(
  client: string,
): Promise<{ readonly view: Explanation["view"]; readonly lines: string[] }> {
  const server = await OfflineServer.start({
    source: { text: COREFILE, file: "Corefile" },
    registry: await PluginRegistry.builtIn(),
    host: memoryHost(),
    machine: thisMachine({}),
    clock: new FakeClock(),
    random: systemRandom(),
    log: new MemoryLog(),
  });
  try {
    const { view, steps } = await server.explain({ name: "www.example.org.", type: RecordType.A, client });
    const lines = steps.flatMap(({ plugin, decision, notes }) => [
      `${plugin} ${decision}`,
      ...notes.map(({ text }) => `- ${text}`),
    ]);
    return { view, lines };
  } finally {
    await server.stop();
  }
}

test("a view that takes a query says why, and an alias leads to another block", async () => {
  const { view, lines } = await explain("10.1.2.3");
  assert.equal(view, "inside");
  assert.deepEqual(lines, [
    "view takes the query",
    `- view "inside" takes it: incidr(client_ip(), '10.0.0.0/8') is true, client_ip() is "10.1.2.3", type() == 'A' is true, type() is "A"`,
    "template answers NOERROR",
    "- template IN A (Corefile:6) applies: .* matches www.example.org.",
    "- template IN A (Corefile:6) answers NOERROR",
    "lookup x.example.net. A, server block example.net.:53, Corefile:22",
    "template answers NOERROR",
    "- template IN A (Corefile:23) applies: ^x matches x.example.net.",
    "- template IN A (Corefile:23) answers NOERROR",
  ]);
});

test("a view that does not says which expression, and a template which condition", async () => {
  const { view, lines } = await explain("198.51.100.7");
  assert.equal(view, undefined);
  assert.deepEqual(lines, [
    "view leaves the query to another server block",
    `- view "inside" does not take it: incidr(client_ip(), '10.0.0.0/8') is false, client_ip() is "198.51.100.7"`,
    "template passes on",
    "- template IN A (Corefile:11): no regular expression matches www.example.org.",
    "- template IN A (Corefile:15): var shard: 0",
    `- template IN A (Corefile:15) does not apply: proto() == 'tcp' is false, proto() is "udp"`,
    "whoami answers NOERROR",
    "- the client asked from here",
  ]);
});
