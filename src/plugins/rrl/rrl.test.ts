import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import rrl from "./index.ts";

const ANSWER = answering({ answer: records("a.test. 60 IN A 192.0.2.1") });
const SOA = records("test. 60 IN SOA test. test. 1 1 1 1 60");
const NXDOMAIN = answering({ rcode: Rcode.NXDOMAIN, authority: SOA });
const NODATA = answering({ authority: SOA });
const REFERRAL = answering({ authority: records("sub.test. 60 IN NS ns.sub.test.") });
const FAILING: Next = (query) => query.fail();

function word(outcome: Outcome): string {
  if (outcome === DROPPED) return "drop";
  if (outcome.kind === "failed") return "pass";
  assert.ok(outcome.kind === "reply");
  if (!outcome.truncated) return "pass";
  assert.equal(outcome.encoded.count, 0);
  return `tc ${outcome.rcode}`;
}

async function asked(
  running: PluginTest<unknown>,
  times: number,
  options: Partial<QuestionOptions> = {},
): Promise<string> {
  const words: string[] = [];
  for (let time = 0; time < times; time++)
    words.push(word(await running.outcome({ name: "a.test.", next: ANSWER, ...options })));
  return words.join(" ");
}

test("without a rate nothing is limited", async () => {
  for (const text of ["rrl", "rrl {}", "rrl test {\n}", "rrl . {\n responses-per-second 0\n}"])
    assert.equal(await asked(PluginTest.of(rrl, text), 3), "pass pass pass", text);
});

test("the example of the external plugin starts", async () => {
  const running = PluginTest.of(rrl, "rrl . {\n    responses-per-second 10\n  }");
  assert.equal(await asked(running, 12), `${"pass ".repeat(10)}drop drop`);
});

test("a client that does not slow down gets nothing more, for the window at most", async () => {
  const running = PluginTest.of(rrl, "rrl {\n responses-per-second 2\n window 5\n}");
  await asked(running, 100);
  running.clock.advance(4_000);
  assert.equal(await asked(running, 1), "drop");
  running.clock.advance(6_000);
  assert.equal(await asked(running, 3), "pass pass drop");
});

describe("equal responses", () => {
  for (const [title, rate, first, others] of [
    ["positive ones have the same name and type", "responses", {}, [{ name: "b.test." }, { type: "AAAA" }]],
    ["NODATA: the same name", "nodata", { next: NODATA }, [{ next: NODATA, name: "b.test." }]],
    ["NXDOMAIN: the same zone", "nxdomains", { next: NXDOMAIN }, [{ next: NODATA }]],
    [
      "referrals: the same zone and type",
      "referrals",
      { next: REFERRAL },
      [{ next: REFERRAL, type: "AAAA" }],
    ],
    ["errors: all", "errors", { next: FAILING }, [{ next: NXDOMAIN }]],
  ] as const) {
    test(title, async () => {
      const running = PluginTest.of(rrl, `rrl {\n ${rate}-per-second 1\n}`);
      assert.equal(await asked(running, 2, first), "pass drop");
      for (const other of others) assert.equal(await asked(running, 1, other), "pass");
      // The client's network, in any spelling of the name.
      assert.equal(await asked(running, 1, { ...first, name: "A.Test.", client: "192.0.2.255" }), "drop");
      assert.equal(await asked(running, 1, { ...first, client: "192.0.3.1" }), "pass");
    });
  }

  test("any name below a zone is the same NXDOMAIN, and any query the same error", async () => {
    const running = PluginTest.of(rrl, "rrl {\n nxdomains-per-second 1\n errors-per-second 1\n}");
    assert.equal(await asked(running, 1, { next: NXDOMAIN, name: "x.test." }), "pass");
    assert.equal(await asked(running, 1, { next: NXDOMAIN, name: "y.test.", type: "MX" }), "drop");
    assert.equal(await asked(running, 1, { next: FAILING, name: "x.test." }), "pass");
    assert.equal(await asked(running, 1, { next: FAILING, name: "y.test.", type: "MX" }), "drop");
  });
});

test("the rates of other kinds are by default those of responses", async () => {
  const running = PluginTest.of(
    rrl,
    "rrl {\n responses-per-second 1\n errors-per-second 0\n nodata-per-second 2\n}",
  );
  assert.equal(await asked(running, 3, { next: NXDOMAIN }), "pass drop drop");
  assert.equal(await asked(running, 3, { next: FAILING }), "pass pass pass");
  assert.equal(await asked(running, 3, { next: NODATA }), "pass pass drop");
});

test("slip-ratio lets each so many through, truncated and empty", async () => {
  const running = PluginTest.of(rrl, "rrl {\n responses-per-second 1\n slip-ratio 3\n}");
  assert.equal(await asked(running, 7), "pass drop drop tc 0 drop drop tc 0");
  assert.equal(await asked(running, 4, { next: NXDOMAIN }), "pass drop drop tc 3");
});

test("responses over connections have no limit, requests have", async () => {
  const running = PluginTest.of(rrl, "rrl {\n responses-per-second 1\n requests-per-second 5\n}");
  assert.equal(await asked(running, 6, { transport: "tcp" }), "pass pass pass pass pass drop");
});

test("requests are limited by network, before they reach the next plugin", async () => {
  const running = PluginTest.of(
    rrl,
    "rrl {\n requests-per-second 2\n ipv4-prefix-length 16\n ipv6-prefix-length 32\n}",
  );
  assert.equal(await asked(running, 1, { client: "10.1.0.1" }), "pass");
  assert.equal(await asked(running, 1, { client: "10.1.2.1" }), "pass");
  const next: Next = () => assert.fail("reached");
  assert.equal(await asked(running, 1, { client: "10.1.3.1", next }), "drop");
  assert.equal(await asked(running, 1, { client: "10.2.0.1" }), "pass");
  for (const verdict of ["pass", "pass", "drop"])
    assert.equal(await asked(running, 1, { client: "2001:db8::1" }), verdict);
  assert.equal(await asked(running, 1, { client: "2001:db8:f::1" }), "drop");
});

test("only names in the zones are limited", async () => {
  const running = PluginTest.of(rrl, "rrl a.test b.test {\n responses-per-second 1\n}");
  assert.equal(await asked(running, 2, { name: "x.b.test." }), "pass drop");
  assert.equal(await asked(running, 2, { name: "c.test." }), "pass pass");
});

test("report-only counts, and lets everything pass", async () => {
  const running = PluginTest.of(
    rrl,
    "rrl {\n responses-per-second 1\n requests-per-second 2\n report-only\n}",
  );
  assert.equal(await asked(running, 4), "pass pass pass pass");
  const { body } = await running.metrics.expose();
  assert.match(body, /^coredns_rrl_responses_exceeded_total 3$/m);
  assert.match(body, /^coredns_rrl_requests_exceeded_total 2$/m);
});

test("answers may be repeated in front of it if only requests are limited, in all zones of the block", () => {
  const witness = (text: string): boolean => PluginTest.of(rrl, text).instances[0]?.witness !== undefined;
  assert.ok(witness("rrl {\n requests-per-second 5\n}"));
  assert.ok(!witness("rrl test {\n requests-per-second 5\n}"));
  assert.ok(!witness("rrl {\n responses-per-second 5\n}"));
});

test("a second directive has no effect, as in the external plugin", async () => {
  const running = PluginTest.of(rrl, "rrl\nrrl {\n responses-per-second 1\n}");
  assert.equal(await asked(running, 3), "pass pass pass");
  assert.equal(running.warnings.length, 1);
});

for (const [text, message] of [
  ["rrl {\n window 0\n}", /window must be greater than zero/],
  ["rrl {\n window five\n}", /five invalid value/],
  ["rrl {\n window 1 2\n}", /after '2'/],
  ["rrl {\n responses-per-second -1\n}", /-1 cannot be negative/],
  ["rrl {\n errors-per-second abc\n}", /abc invalid value/],
  ["rrl {\n ipv4-prefix-length 33\n}", /33 must be between 1 and 32/],
  ["rrl {\n ipv6-prefix-length 0\n}", /0 must be between 1 and 128/],
  ["rrl {\n max-table-size -1\n}", /-1 cannot be negative/],
  ["rrl {\n max-table-size ginormous\n}", /ginormous invalid value/],
  ["rrl {\n report-only yes\n}", /after 'yes'/],
  ["rrl {\n blah\n}", /unknown property 'blah'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(rrl, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
