import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, type Outcome } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import errors from "./index.ts";

type Running = ReturnType<typeof start>;

function start(text: string) {
  return PluginTest.of(errors, text);
}

function failing(message: string, rcode: number = Rcode.SERVFAIL): Next {
  return (query) => query.fail(rcode, new Error(message));
}

function fail(running: Running, message: string, name = "example.org."): Outcome | Promise<Outcome> {
  return running.outcome({ name, next: failing(message) });
}

test("logs rcode, name, type and error, and passes the failure on", async () => {
  const running = start("errors");
  const outcome = await running.outcome({
    name: "WWW.Example.ORG.",
    type: "AAAA",
    next: failing("read udp 192.0.2.1:5000->192.0.2.2:53: i/o timeout"),
  });
  assert.deepEqual(running.log.lines, [
    "[ERROR] plugin/errors: 2 www.example.org. AAAA: read udp 192.0.2.1:5000->192.0.2.2:53: i/o timeout",
  ]);
  assert.equal(outcome.kind === "failed" && outcome.error?.message.endsWith("i/o timeout"), true);
});

test("logs failures that come later, with any rcode and type", async () => {
  const running = start("errors stdout");
  await running.outcome({
    name: "a\\032b\\010c.example.",
    type: "TYPE65280",
    next: (query) => Promise.resolve(query.fail(Rcode.REFUSED, new Error("not here"))),
  });
  assert.deepEqual(running.log.lines, [
    "[ERROR] plugin/errors: 5 a\\032b\\010c.example. TYPE65280: not here",
  ]);
});

test("logs no answers, drops and failures without an error", async () => {
  const running = start("errors");
  const ends: readonly Next[] = [
    (query) => query.reply({ rcode: Rcode.SERVFAIL }),
    (query) => query.fail(Rcode.SERVFAIL),
    () => DROPPED,
  ];
  for (const next of ends) await running.outcome({ name: "example.org.", next });
  assert.deepEqual(running.log.lines, []);
});

test("stacktrace belongs to the block", () => {
  assert.equal(start("errors").settings.stackTraces, false);
  assert.equal(start("errors {\n stacktrace\n}").settings.stackTraces, true);
});

test("counts errors that match, and logs their number a period after the first", async () => {
  const running = start('errors {\n consolidate 1m30s ".*timeout$"\n}');
  await fail(running, "i/o timeout");
  running.clock.advance(89_999);
  await fail(running, "another timeout");
  await fail(running, "timeout of another kind");
  assert.deepEqual(running.log.lines.splice(0), [
    "[ERROR] plugin/errors: 2 example.org. A: timeout of another kind",
  ]);
  running.clock.advance(1);
  assert.deepEqual(running.log.lines.splice(0), [
    "[ERROR] plugin/errors: 2 errors like '.*timeout$' occurred in last 1m30s",
  ]);
  assert.equal(running.clock.pendingTimers, 0);

  await fail(running, "i/o timeout");
  running.clock.advance(90_000);
  assert.deepEqual(running.log.lines, [
    "[ERROR] plugin/errors: 1 errors like '.*timeout$' occurred in last 1m30s",
  ]);
});

for (const [level, prefix] of [
  ["warning", "[WARNING]"],
  ["error", "[ERROR]"],
  ["info", "[INFO]"],
  ["debug", "[DEBUG]"],
] as const) {
  test(`the level ${level} is that of the summary and of the first error`, async () => {
    const running = start(`errors {\n consolidate 5m timeout ${level} show_first\n}`);
    await fail(running, "timeout 1");
    await fail(running, "timeout 2");
    running.clock.advance(300_000);
    assert.deepEqual(running.log.lines, [
      `${prefix} plugin/errors: 2 example.org. A: timeout 1`,
      `${prefix} plugin/errors: 2 errors like 'timeout' occurred in last 5m0s`,
    ]);
  });
}

test("with show_first a single error has no summary", async () => {
  const running = start("errors {\n consolidate 5m timeout show_first\n}");
  await fail(running, "timeout 1");
  running.clock.advance(300_000);
  await fail(running, "timeout 2");
  assert.deepEqual(running.log.lines, [
    "[ERROR] plugin/errors: 2 example.org. A: timeout 1",
    "[ERROR] plugin/errors: 2 example.org. A: timeout 2",
  ]);
});

test("of several patterns the first that matches counts", async () => {
  const running = start("errors {\n consolidate 1s refused info\n consolidate 2s .* warning\n}");
  await fail(running, "connection refused");
  await fail(running, "anything");
  running.clock.advance(2_000);
  assert.deepEqual(running.log.lines, [
    "[INFO] plugin/errors: 1 errors like 'refused' occurred in last 1s",
    "[WARNING] plugin/errors: 1 errors like '.*' occurred in last 2s",
  ]);
});

test("pending counts are logged at the end, and no timer stays", async () => {
  const running = start("errors {\n consolidate 5m timeout\n consolidate 5m refused\n}");
  await fail(running, "timeout");
  assert.equal(running.clock.pendingTimers, 1);
  await running.stop();
  assert.equal(running.clock.pendingTimers, 0);
  assert.deepEqual(running.log.lines, [
    "[ERROR] plugin/errors: 1 errors like 'timeout' occurred in last 5m0s",
  ]);
});

for (const [text, code, message] of [
  ["errors\nerrors", "PLUGIN_REPEATED", /can only be used once per Server Block/],
  ["errors /var/log/dns", "PLUGIN_BAD_VALUE", /2:8: error: invalid log file: \/var\/log\/dns/],
  ["errors stdout stdout", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'stdout'/],
  ["errors {\n stacktrase\n}", "PLUGIN_UNKNOWN_PROPERTY", /'stacktrase'[\s\S]*mean 'stacktrace'/],
  ["errors {\n consolidate\n}", "PLUGIN_ARGUMENT_MISSING", /PERIOD: a duration/],
  ["errors {\n consolidate 5m\n}", "PLUGIN_ARGUMENT_MISSING", /PATTERN: a regular expression/],
  ["errors {\n consolidate 5 x\n}", "PLUGIN_BAD_VALUE", /duration '5' has no unit[\s\S]*mean '5s'/],
  ["errors {\n consolidate 0s x\n}", "PLUGIN_BAD_VALUE", /'0s' is not a duration .* of 1ms or more/],
  [
    "errors {\n consolidate 5m (\n}",
    "PLUGIN_BAD_VALUE",
    /3:17: error: error parsing regexp: missing closing \)/,
  ],
  ["errors {\n consolidate 5m x fatal\n}", "PLUGIN_BAD_VALUE", /unknown value 'fatal'/],
  ["errors {\n consolidate 5m x info debug\n}", "PLUGIN_BAD_VALUE", /unknown value 'debug'/],
  [
    "errors {\n consolidate 5m x show_first info\n}",
    "PLUGIN_ARGUMENT_UNEXPECTED",
    /unexpected line ending after 'info'/,
  ],
  [
    `errors {\n consolidate 5m ${"a".repeat(10_001)}\n}`,
    "PLUGIN_BAD_VALUE",
    /regex pattern too long: 10001 > 10000/,
  ],
] as const) {
  test(`refuses ${JSON.stringify(text.slice(0, 60))}`, () => {
    assert.throws(
      () => start(text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
