import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import fc from "fast-check";
import { Rcode } from "../../dns/index.ts";
import { HONEST, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { until } from "../../upstream/fixtures/test-request.ts";
import { ForwardBench, metricLines, withShortAddress } from "./fixtures/forward-bench.ts";

const bench = new ForwardBench();
afterEach(() => bench.stop());

describe("a reply that is odd", () => {
  it("makes an empty truncated answer of a datagram that is cut off", async () => {
    const server = await bench.server((asked) => {
      const whole = asked.encode({
        answer: Array.from({ length: 9 }, (_, n) => `${asked.name} 1 IN A 192.0.2.${n}`),
      });
      asked.send(whole.subarray(0, whole.length - 5));
    });
    const test = await bench.start(`forward . ${server.text}`);
    const { reply } = await test.ask({ name: "example.org." });
    assert.equal(reply.rcode, Rcode.NOERROR);
    assert.equal(reply.truncated, true);
    assert.equal(reply.encoded.count, 0);
  });

  it("ignores and counts octets after the last record, and records that are claimed but missing", async () => {
    const server = await bench.server((asked) => {
      const reply = asked.encode({ answer: [`${asked.name} 1 IN A 192.0.2.1`] });
      if (asked.name !== "trailing.example.") reply[11] = 3;
      asked.send(asked.name === "trailing.example." ? Buffer.concat([reply, Buffer.from("rubbish")]) : reply);
    });
    const test = await bench.start(`forward . ${server.text}`);
    for (const [index, name] of ["trailing.example.", "missing.example."].entries()) {
      const answer = await test.ask({ name });
      assert.deepEqual(answer.answer, [`${name} 1 IN A 192.0.2.1`]);
      assert.equal(answer.reply.truncated, false);
      assert.deepEqual(
        await metricLines(
          test,
          'portolan_proxy_irregular_replies_total{proxy_name="forward",to="' +
            server.text +
            '",reason="length',
        ),
        [
          `portolan_proxy_irregular_replies_total{proxy_name="forward",to="${server.text}",reason="length"} ${index + 1}`,
        ],
      );
    }
  });

  it("treats a TTL above 2^31-1 as 0", async () => {
    const server = await bench.server((asked) => {
      const reply = asked.encode({
        answer: [`${asked.name} 2147483647 IN A 192.0.2.1`, `${asked.name} 1 IN TXT text`],
      });
      const ttl = reply.length - "text".length - 1 - 6;
      reply[ttl] = 0x80;
      asked.send(reply);
    });
    const test = await bench.start(`forward . ${server.text}`);
    const answer = await test.ask({ name: "example.org." });
    assert.deepEqual(answer.answer, [
      "example.org. 2147483647 IN A 192.0.2.1",
      'example.org. 0 IN TXT "text"',
    ]);
  });

  it("passes an error without a question on", async () => {
    const server = await bench.server((asked) =>
      asked.send(Uint8Array.of(...asked.bytes.subarray(0, 2), 0x81, 0x84, 0, 0, 0, 0, 0, 0, 0, 0)),
    );
    const test = await bench.start(`forward . ${server.text}`);
    const { reply } = await test.ask({ name: "example.org." });
    assert.equal(reply.rcode, Rcode.NOTIMP);
  });

  it("treats a malformed reply as a failure", async () => {
    const server = await bench.server((asked) => asked.send(withShortAddress(asked)));
    const test = await bench.start(`forward . ${server.text}`);
    const outcome = await test.outcome({ name: "example.org." });
    assert.ok(outcome.kind === "failed");
    assert.equal(outcome.rcode, Rcode.SERVFAIL);
    assert.match(outcome.error?.message ?? "", /^reply from 127\.0\.0\.1:\d+: input ends too early/);
    assert.equal(server.asked.filter(({ name }) => name !== ".").length, 2);
  });

  it("treats malformed EDNS options as a failure, not as truncation", async () => {
    const server = await bench.server((asked) => {
      const reply = asked.encode({
        message: {
          edns: {
            udpSize: 512,
            version: 0,
            dnssecOk: false,
            options: [{ code: 10, data: new Uint8Array(8) }],
          },
        },
      });
      reply[reply.length - 9] = 200;
      asked.send(reply);
    });
    const test = await bench.start(`forward . ${server.text}`);
    const outcome = await test.outcome({ name: "example.org.", edns: {} });
    assert.ok(outcome.kind === "failed");
  });

  it("keeps waiting after a reply to another question, and logs it with debug", async () => {
    const server = await bench.server((asked) => {
      asked.answer({ message: { questions: [] } });
      HONEST(asked);
    });
    const test = await bench.start(`forward . ${server.text}`);
    const { reply } = await test.ask({ name: "example.org." });
    assert.equal(reply.rcode, Rcode.NOERROR);
    assert.equal(reply.encoded.count, 1);
    assert.equal(server.asked.length, 1);
    const [line] = await metricLines(
      test,
      `portolan_proxy_discarded_messages_total{proxy_name="forward",to="${server.text}",proto="udp",reason="question"`,
    );
    assert.match(line ?? "", / 1$/);
    assert.match(
      test.log.lines[0] ?? "",
      /^\[DEBUG\] plugin\/forward: Wrong reply from 127\.0\.0\.1:\d+ for id: \d+, example\.org\. 1$/,
    );
    assert.match(
      test.log.lines[1] ?? "",
      /^\[DEBUG\] plugin\/forward: debug: 000000 ([0-9a-f]{2} ){11}[0-9a-f]{2}$/,
    );
    assert.equal(test.log.lines[2], "[DEBUG] plugin/forward: debug: 00000c");
  });

  it("logs nothing without debug", async () => {
    const server = await bench.server((asked) => {
      asked.answer({ message: { questions: [] } });
      HONEST(asked);
    });
    const test = await bench.start(`forward . ${server.text}`);
    test.log.debugEnabled = false;
    await test.ask({ name: "example.org." });
    assert.deepEqual(test.log.lines, []);
  });

  it("counts replies that match no query", async () => {
    const server = await bench.server((asked) => {
      asked.send(Uint8Array.of(1));
      asked.answer({ message: { id: asked.message.id ^ 1 } });
      HONEST(asked);
    });
    const test = await bench.start(`forward . ${server.text}`);
    await test.ask({ name: "example.org." });
    const labels = `proxy_name="forward",to="${server.text}",proto="udp"`;
    const lines = await metricLines(test, `portolan_proxy_discarded_messages_total{${labels}`);
    assert.deepEqual(lines, [
      `portolan_proxy_discarded_messages_total{${labels},reason="short"} 1`,
      `portolan_proxy_discarded_messages_total{${labels},reason="id"} 1`,
      `portolan_proxy_discarded_messages_total{${labels},reason="question"} 0`,
    ]);
  });

  it("terminates with every damaged reply", async () => {
    const server = await bench.server(SILENT);
    const test = await bench.start(`forward . ${server.text} {\nmax_fails 0\n}`);
    const length = 80;
    const change = fc.tuple(fc.integer({ min: 2, max: length }), fc.integer({ min: 0, max: 255 }));
    const damage = fc.record({
      changes: fc.array(change, { maxLength: 6 }),
      cut: fc.integer({ min: 12, max: length }),
    });
    await fc.assert(
      fc.asyncProperty(
        damage,
        fc.constantFrom("udp" as const, "tcp" as const),
        async ({ changes, cut }, transport) => {
          server.script = (asked) => {
            const reply = asked.encode({
              answer: [`${asked.name} 60 IN A 192.0.2.1`],
              message: { edns: { udpSize: 512, version: 0, dnssecOk: false, options: [] } },
            });
            for (const [at, octet] of changes) if (at < reply.length) reply[at] = octet;
            asked.send(reply.subarray(0, cut));
          };
          let done = false;
          const settled = Promise.resolve(
            test.outcome({ name: "example.org.", transport, edns: {} }),
          ).finally(() => {
            done = true;
          });
          // With a damaged question the query waits for the true answer.
          await until(() => {
            if (!done) test.clock.advance(100);
            return done;
          }, "it comes to an end");
          const outcome = await settled;
          assert.ok(outcome.kind === "reply" || outcome.kind === "failed");
          if (outcome.kind === "reply") assert.ok(outcome.encoded.end >= 0);
        },
      ),
      { numRuns: 300 },
    );
  });
});
