import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { describe, it } from "node:test";
import fc from "fast-check";
import { escapeControls, type LogSink, LogWriter, MemoryLog, ProcessLog, writeAllSync } from "./log.ts";

describe("ProcessLog", () => {
  it("prints the level and the prefixes before the message", () => {
    const log = new MemoryLog();
    log.info("plain");
    log.warning("plain");
    log.error("plain");
    const plugin = log.child("plugin/kubernetes");
    plugin.debug("one");
    plugin.info("two");
    plugin.warning("three");
    plugin.child("watch").error("four");
    log.write("fatal", "five");
    assert.deepEqual(log.lines, [
      "[INFO] plain",
      "[WARNING] plain",
      "[ERROR] plain",
      "[DEBUG] plugin/kubernetes: one",
      "[INFO] plugin/kubernetes: two",
      "[WARNING] plugin/kubernetes: three",
      "[ERROR] plugin/kubernetes: watch: four",
      "[FATAL] five",
    ]);
  });

  it("prints debug lines only while they are on, also for loggers made before", () => {
    const lines: string[] = [];
    const log = new ProcessLog({ writeLine: (line) => lines.push(line) });
    const child = log.child("plugin/debug");
    log.debug("no");
    child.debug("no");
    assert.equal(child.debugEnabled, false);
    log.debugEnabled = true;
    assert.equal(child.debugEnabled, true);
    log.debug("yes");
    child.debug("yes");
    assert.deepEqual(lines, ["[DEBUG] yes", "[DEBUG] plugin/debug: yes"]);
  });
});

describe("escapeControls", () => {
  it("keeps what is harmless and escapes what could forge or hide a line", () => {
    assert.equal(escapeControls("a\\.example. \u00fc \u{1f6a2}"), "a\\.example. \u00fc \u{1f6a2}");
    assert.equal(escapeControls("a\nb\r\tc"), "a\\nb\\r\\tc");
    assert.equal(escapeControls("\x00\x1b[2J\x7f\x9b"), "\\x00\\x1b[2J\\x7f\\x9b");
    assert.equal(escapeControls("\u2028\u2029"), "\\u2028\\u2029");
    assert.equal(escapeControls("gpj\u202eexe\u2066"), "gpj\\u202eexe\\u2066");
  });

  it("leaves one printable line of any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        assert.doesNotMatch(escapeControls(text), /[\p{Cc}\u2028\u2029]/u);
      }),
    );
  });
});

describe("LogWriter", () => {
  it("writes the lines of one turn at once", async () => {
    const sink = new HeldSink();
    const writer = new LogWriter(sink);
    writer.writeLine("one");
    writer.writeLine("two\nforged");
    assert.deepEqual(sink.texts, []);
    await eventLoopTurn();
    assert.deepEqual(sink.texts, ["one\ntwo\\nforged\n"]);
  });

  it("hands on the next batch when the sink took the one before", async () => {
    const sink = new HeldSink();
    const writer = new LogWriter(sink);
    writer.writeLine("one");
    await eventLoopTurn();
    writer.writeLine("two");
    writer.writeLine("three");
    await eventLoopTurn();
    assert.deepEqual(sink.texts, ["one\n"]);
    sink.release();
    assert.deepEqual(sink.texts, ["one\n", "two\nthree\n"]);
  });

  it("drops lines past the bound, counts them, and says so when the sink takes lines again", async () => {
    const sink = new HeldSink();
    const writer = new LogWriter(sink, { maxLines: 3 });
    writer.writeLine("1");
    await eventLoopTurn();
    for (let line = 2; line <= 6; line++) writer.writeLine(String(line));
    assert.equal(writer.dropped, 3);
    sink.release();
    sink.release();
    writer.writeLine("7");
    await eventLoopTurn();
    assert.deepEqual(sink.texts, [
      "1\n",
      "2\n3\n[WARNING] 3 log lines were dropped: the reader of the log did not keep up\n",
      "7\n",
    ]);
    assert.equal(writer.dropped, 3);
  });

  it("reports a loss even if no line waits behind it", async () => {
    const sink = new HeldSink();
    const writer = new LogWriter(sink, { maxLines: 1 });
    writer.writeLine("1");
    await eventLoopTurn();
    writer.writeLine("2");
    sink.release();
    assert.equal(sink.texts[1], "[WARNING] 1 log line was dropped: the reader of the log did not keep up\n");
  });

  it("bounds the characters that wait, too", async () => {
    const sink = new HeldSink();
    const writer = new LogWriter(sink, { maxCharacters: 10 });
    writer.writeLine("12345");
    await eventLoopTurn();
    writer.writeLine("1234");
    writer.writeLine("123");
    writer.writeLine("");
    assert.equal(writer.dropped, 2);
    sink.release();
    assert.match(sink.texts[1] ?? "", /^123\n\[WARNING\] 2 log lines/);
  });

  it("survives a sink that fails, and reports what was lost with the next line", async () => {
    const sink = new HeldSink();
    const writer = new LogWriter(sink);
    writer.writeLine("lost");
    await eventLoopTurn();
    sink.release(new Error("EPIPE"));
    assert.equal(sink.texts.length, 1);
    writer.writeLine("lost too");
    await eventLoopTurn();
    sink.release(new Error("EPIPE"));
    assert.equal(writer.dropped, 2);
    writer.writeLine("kept");
    await eventLoopTurn();
    sink.release();
    assert.match(sink.texts[2] ?? "", /^kept\n\[WARNING\] 2 log lines were dropped/);
  });

  it("survives a stream that is destroyed, and a sink that throws", async () => {
    const stream = new PassThrough();
    const writer = new LogWriter(stream);
    stream.destroy(new Error("EPIPE"));
    writer.writeLine("lost");
    await writer.flush();
    assert.equal(writer.dropped, 1);

    const throwing = new LogWriter({
      write: () => {
        throw new Error("broken");
      },
    });
    throwing.writeLine("lost");
    await throwing.flush();
    assert.equal(throwing.dropped, 1);
  });

  it("flushes what was written before the call, without waiting for what came after", async () => {
    const sink = new HeldSink();
    const writer = new LogWriter(sink);
    await writer.flush();
    writer.writeLine("one");
    let flushed = 0;
    const first = writer.flush().then(() => flushed++);
    writer.writeLine("two");
    const second = writer.flush().then(() => flushed++);
    assert.deepEqual(sink.texts, ["one\n"]);
    await eventLoopTurn();
    assert.equal(flushed, 0);
    sink.release();
    await first;
    assert.equal(flushed, 1);
    sink.release();
    await second;
  });

  it("writes what waits at once in flushSync", async () => {
    const sink = new HeldSink();
    const last: string[] = [];
    const writer = new LogWriter(sink, { writeSync: (text) => last.push(text) });
    writer.flushSync();
    writer.writeLine("[FATAL] no way on");
    writer.flushSync();
    assert.deepEqual(last, ["[FATAL] no way on\n"]);
    await eventLoopTurn();
    assert.deepEqual(sink.texts, []);
    await writer.flush();
  });

  it("loses last words that cannot be written", async () => {
    const writer = new LogWriter(new HeldSink(), {
      writeSync() {
        throw new Error("EPIPE");
      },
    });
    writer.writeLine("[INFO] one");
    writer.writeLine("[INFO] two");
    writer.flushSync();
    assert.equal(writer.dropped, 2);
    await writer.flush();
  });

  it("writes to a real stream that stalls and recovers", async () => {
    const stream = new PassThrough({ highWaterMark: 16 });
    const writer = new LogWriter(stream, { maxLines: 100 });
    for (let line = 0; line < 150; line++) writer.writeLine(`line ${line}`);
    const flushed = writer.flush();
    let text = "";
    stream.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    await flushed;
    const lines = text.split("\n");
    assert.deepEqual([lines[0], lines[99]], ["line 0", "line 99"]);
    assert.match(lines[100] ?? "", /^\[WARNING\] 50 log lines/);
  });

  it("leaves nothing pending when each write answers at once", async () => {
    let text = "";
    const stream = new Writable({
      write(chunk: Buffer, _encoding, callback) {
        text += chunk.toString();
        callback();
      },
    });
    const writer = new LogWriter(stream);
    for (let line = 0; line < 10; line++) {
      writer.writeLine(String(line));
      if (line % 3 === 0) await eventLoopTurn();
    }
    await writer.flush();
    assert.equal(text, "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  });
});

describe("writeAllSync", () => {
  it("writes a text whole", () => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-log-"));
    const path = join(folder, "log");
    const fd = openSync(path, "w");
    const text = "\u00fc line\n".repeat(100_000);
    writeAllSync(fd, text);
    closeSync(fd);
    assert.equal(readFileSync(path, "utf8"), text);
    rmSync(folder, { recursive: true });
    assert.throws(() => writeAllSync(fd, "closed"), { code: "EBADF" });
  });

  it("does not wait for ever for the reader of a full pipe", (context) => {
    const folder = mkdtempSync(join(tmpdir(), "portolan-log-"));
    const path = join(folder, "pipe");
    if (spawnSync("mkfifo", [path]).status !== 0) return context.skip("no mkfifo here");
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    assert.throws(() => writeAllSync(fd, "line\n".repeat(100_000), 20), { code: "EAGAIN" });
    closeSync(fd);
    rmSync(folder, { recursive: true });
  });
});

/** A sink that takes one batch at a time, when told. */
class HeldSink implements LogSink {
  readonly texts: string[] = [];
  #callback: ((error?: Error | null) => void) | undefined;

  write(text: string, callback: (error?: Error | null) => void): void {
    assert.equal(this.#callback, undefined, "one write at a time");
    this.texts.push(text);
    this.#callback = callback;
  }

  release(error?: Error): void {
    const callback = this.#callback;
    this.#callback = undefined;
    assert.ok(callback);
    callback(error);
  }
}

function eventLoopTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
