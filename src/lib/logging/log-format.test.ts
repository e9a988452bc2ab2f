import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { FakeClock } from "../time/clock.ts";
import { LogWriter, MemoryLog } from "./log.ts";
import { jsonFormat } from "./log-format.ts";

const clock = new FakeClock({ wallTime: Date.UTC(2026, 10, 28, 8, 10, 53, 7) });
const format = jsonFormat(() => clock.wallTime());
const TIME = '"time":"2026-11-28T08:10:53.007Z"';

describe("the log in JSON", () => {
  it("has time, level, message and plugin, in this order", () => {
    const log = new MemoryLog({ format });
    log.debug("one");
    log.warning("two");
    log.child("plugin/kubernetes").child("watch").error("three");
    log.child("watch").info("four");
    log.write("fatal", "plugin/file: five");
    assert.deepEqual(log.lines, [
      `{${TIME},"level":"DEBUG","msg":"one"}`,
      `{${TIME},"level":"WARN","msg":"two"}`,
      `{${TIME},"level":"ERROR","msg":"watch: three","plugin":"kubernetes"}`,
      `{${TIME},"level":"INFO","msg":"watch: four"}`,
      `{${TIME},"level":"FATAL","msg":"plugin/file: five"}`,
    ]);
  });

  it("has fields behind the message, which a text leaves out", () => {
    const log = new MemoryLog({ format });
    const text = new MemoryLog();
    for (const each of [log, text]) each.infoWith("a line", { plugin: "log", size: 3, rcode: null });
    assert.deepEqual(log.lines, [
      `{${TIME},"level":"INFO","msg":"a line","plugin":"log","size":3,"rcode":null}`,
    ]);
    assert.deepEqual(text.lines, ["[INFO] a line"]);
    assert.deepEqual([log.takesFields, log.child("x").takesFields, text.takesFields], [true, true, false]);
  });

  it("makes one object of lines without a level that belong together, and leaves finished objects", () => {
    const log = new MemoryLog({ format });
    log.plainLines(["a.:53", "b.:53"]);
    log.plainLines([]);
    log.plain("alone");
    log.object('{"a":1}');
    assert.deepEqual(log.lines, [
      `{${TIME},"level":"INFO","msg":"a.:53\\nb.:53"}`,
      `{${TIME},"level":"INFO","msg":"alone"}`,
      '{"a":1}',
    ]);
  });

  it("keeps any message, on one line without a character that the log escapes in words of its own", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (message) => {
        const log = new MemoryLog({ format });
        log.error(message);
        const [line = ""] = log.lines;
        assert.doesNotMatch(line, /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u);
        assert.equal(JSON.parse(line).msg, message);
      }),
    );
  });

  it("reports lost lines as an object", async () => {
    const texts: string[] = [];
    const sink = {
      write: (text: string, done: (error?: Error | null) => void) => {
        texts.push(text);
        setImmediate(done);
      },
    };
    const writer = new LogWriter(sink, { maxLines: 1, format });
    writer.writeLine("{}");
    writer.writeLine("{}");
    await writer.flush();
    const lost = texts.join("").split("\n")[1] ?? "";
    assert.match(JSON.parse(lost).msg, /^1 log line was dropped/);
  });
});
