/** Upstreams that lie, dawdle or hang up. Whatever they do, the client gets no wrong answer. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Name } from "../../src/dns/name.ts";
import { ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import {
  byFirstLabel,
  LIE,
  lateAnswers,
  OVER_TCP,
  OVER_UDP,
  question,
  say,
  TRUTH,
} from "../support/lying-upstream.ts";
import { outcome } from "../support/outcome.ts";
import { Portolan } from "../support/portolan.ts";

for (const [transport, liars] of [
  ["udp", OVER_UDP],
  ["tcp", OVER_TCP],
] as const) {
  describe(`an upstream over ${transport.toUpperCase()}`, () => {
    let upstream: ScriptedServer;
    let server: Portolan;
    before(async () => {
      upstream = await ScriptedServer.start(byFirstLabel(liars));
      server = await Portolan.start(
        (port) => `.:${port("dns")} {
          bind 127.0.0.1
          errors
          prometheus 127.0.0.1:${port("metrics")}
          forward . ${upstream.text} {
            read_timeout 1s
            max_fails 0
          }
        }`,
      );
    });
    after(async () => {
      await server?.[Symbol.asyncDispose]();
      for (const timer of lateAnswers) clearTimeout(timer);
      await upstream?.stop();
    });

    test("asked by many at once: each client gets its own answer or none", async () => {
      // Without those that let a query wait, and those that break a connection which others share.
      const labels = Object.keys(liars).filter(
        (label) => !/id|silent|late|rubbish|half|reset|close|pieces/.test(label),
      );
      const names = Array.from({ length: 200 }, (_, n) => labels[n % labels.length] ?? "");
      const outcomes = await Promise.all(
        names.map((label) => outcome(server, `${label}.example`, "A", transport)),
      );
      assert.deepEqual(
        outcomes,
        names.map((label) => liars[label]?.outcome),
      );
    });

    for (const [label, { does, outcome: expected }] of Object.entries(liars)) {
      test(`that ${does}: ${expected}`, async () => {
        assert.equal(await outcome(server, `${label}.example`, "A", transport), expected);
        // Its answer to one query does not harm the next.
        assert.equal(await outcome(server, "honest.example", "A", transport), `NOERROR ${TRUTH}`);
      });
    }

    test("what was thrown away is counted", async () => {
      const { body } = await server.page("metrics", "/metrics");
      const count = (reason: string): number =>
        Number(
          new RegExp(
            `^portolan_proxy_discarded_messages_total\\{.*proto="${transport}",reason="${reason}"\\} (\\d+)`,
            "m",
          ).exec(body)?.[1],
        );
      assert.ok(count("id") >= (transport === "udp" ? 200 : 1));
      assert.ok(count("question") >= (transport === "udp" ? 8 : 1));
      if (transport === "udp") assert.ok(count("short") >= 1);
      assert.match(body, /^coredns_panics_total 0$/m);
    });
  });
}

test("a lie is not kept in the cache", async () => {
  let lies = true;
  const upstream = await ScriptedServer.start((asked) =>
    asked.send(
      lies ? say(asked, LIE, question(asked, { name: Name.parse("other.example.") })) : say(asked, TRUTH),
    ),
  );
  try {
    await using server = await Portolan.start(
      (port) =>
        `.:${port("dns")} {\n  forward . ${upstream.text} {\n read_timeout 300ms\n max_fails 0\n }\n  cache 30\n}\n`,
    );
    // A failure is kept for some seconds, too: another name is asked then.
    assert.equal(await outcome(server, "b.example"), "SERVFAIL");
    lies = false;
    assert.equal(await outcome(server, "a.example"), `NOERROR ${TRUTH}`);
    assert.equal(await outcome(server, "other.example"), `NOERROR ${TRUTH}`);
  } finally {
    await upstream.stop();
  }
});
