import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import consolePlugin from "./index.ts";

for (const [text, code, message] of [
  [
    "console :8184",
    "CONSOLE_WITHOUT_TOKEN",
    /makes the console reachable on every address of this machine without a password/,
  ],
  ["console 10.0.0.1:8184", "CONSOLE_WITHOUT_TOKEN", /reachable on 10\.0\.0\.1 without a password/],
  ["console 8184", "PLUGIN_BAD_VALUE", /'8184' is not an address with a port/],
  ["console {\n fleet a:99999\n}", "PLUGIN_BAD_VALUE", /'a:99999' is not a host with a port/],
  ["console {\n fleet a:0\n}", "PLUGIN_BAD_VALUE", /'a:0' is not a host with a port/],
  ["console {\n fleet a\n}", "PLUGIN_BAD_VALUE", /'a' is not a host with a port/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(consolePlugin, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}

test("writes queries while it runs, and reads them", async () => {
  const running = PluginTest.of(consolePlugin, "console 127.0.0.1:18184");
  await running.start();
  assert.ok(running.http.has("127.0.0.1:18184/api/v1/now"));
  assert.deepEqual(running.log.lines, ["[INFO] plugin/console: the console is at http://127.0.0.1:0/"]);
  await running.stop();
  assert.equal(running.clock.pendingTimers, 0);
});

test("refuses a second address, and a token that could be guessed", async () => {
  const shared = new Map<string, unknown>();
  PluginTest.of(consolePlugin, "console 127.0.0.1:1", { shared });
  assert.throws(
    () => PluginTest.of(consolePlugin, "console 127.0.0.1:2", { shared }),
    /one 'console' for the whole server/,
  );
  const absent = PluginTest.of(consolePlugin, "console {\n token_file /nonexistent/token\n}");
  await assert.rejects(absent.start(), /token_file: .*: no such file or directory/);
});
