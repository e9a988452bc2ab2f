import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigRefused, FakeClock, PluginTest, type QuestionOptions } from "../../plugin/testing.ts";
import cancel from "./index.ts";

/** The deadline that the next plugin sees. */
function deadlineBehind(text: string, question: Partial<QuestionOptions> = {}): number | undefined {
  let seen: number | undefined;
  const running = PluginTest.of(cancel, text, { clock: new FakeClock({ now: 1_000 }) });
  void running.outcome({
    name: "example.org.",
    next: (query) => {
      seen = query.deadline;
      return query.reply();
    },
    ...question,
  });
  return seen;
}

for (const [text, expected] of [
  ["cancel", 6_001],
  ["cancel 2s", 3_000],
  ["cancel 1.5ms", 1_001.5],
  ["cancel 1h\ncancel 1s", 2_000],
] as const) {
  test(`${JSON.stringify(text)} gives a query that came at 1000 ms until ${expected} ms`, () => {
    assert.equal(deadlineBehind(text), expected);
  });
}

test("keeps an earlier deadline, and sets its own on derived queries", () => {
  const running = PluginTest.of(cancel, "cancel 2s");
  const query = running.query({ name: "example.org." });
  query.deadline = 700;
  let seen = 0;
  void running.chain((behind) => {
    seen = behind.derive({ type: 28 }).deadline;
    return behind.reply();
  })(query);
  assert.equal(seen, 700);
});

test("warns about a second line", () => {
  assert.match(
    PluginTest.of(cancel, "cancel 1h\ncancel 1s").warnings.join("\n"),
    /2:1: warning: 'cancel' is repeated on line 3: only the last counts/,
  );
});

for (const [text, code, message] of [
  ["cancel 0", "PLUGIN_BAD_VALUE", /2:8: error: invalid negative duration: "0"/],
  ["cancel -5s", "PLUGIN_BAD_VALUE", /invalid negative duration: "-5s"/],
  ["cancel 5", "PLUGIN_BAD_VALUE", /invalid duration: "5"/],
  ["cancel soon", "PLUGIN_BAD_VALUE", /invalid duration: "soon"/],
  ["cancel 1s 2s", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after '2s'/],
  ["cancel {\n after 1s\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'after'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(cancel, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
