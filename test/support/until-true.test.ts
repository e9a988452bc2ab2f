import assert from "node:assert/strict";
import { test } from "node:test";
import { untilTime, untilTrue } from "./until-true.ts";

test("a wait in vain names what it was for, why the last question failed, and the end of the log", async () => {
  const log = () => Array.from({ length: 100 }, (_, line) => `line ${line}\n`).join("");
  const cause = new Error("no route");
  const wait = untilTrue(() => Promise.reject(cause), { what: "an answer", log, milliseconds: 5 });
  await assert.rejects(wait, (error: Error) => {
    assert.match(error.message, /^waited 5 ms in vain for: an answer\nThe log ends with:\nline 70\n/);
    assert.match(error.message, /\nline 99$/);
    assert.equal(error.cause, cause);
    return true;
  });
});

test("a wait in vain shows the question where nothing else is said", () =>
  assert.rejects(
    untilTrue(() => "words".includes("other words"), { milliseconds: 0 }),
    /^Error: waited 0 ms in vain for: \(\) => "words"\.includes\("other words"\)$/,
  ));

test("a question may fail before it is answered with yes", async () => {
  let asked = 0;
  await untilTrue(
    () => {
      if (++asked < 3) throw new Error("not yet");
      return true;
    },
    { between: async () => undefined },
  );
  assert.equal(asked, 3);
});

test("the clock of a plugin moves between two questions", async () => {
  let now = 0;
  const clock = {
    async settle(milliseconds: number) {
      now += milliseconds;
    },
  };
  await untilTime({ clock, log: { lines: [] } }, 500, () => now >= 1_500);
  assert.equal(now, 1_500);
});
