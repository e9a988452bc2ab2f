/** `fstrm_capture` and `dnstap-ldns` from Debian: what takes dnstap's messages, and what shows them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { run } from "./program.ts";

export const skipWithoutCapture: string | false = skipWithout("fstrm_capture", "dnstap-ldns");

/** fstrm_capture, which waits for connections at a Unix socket and writes what comes to a file. */
export class Capture implements AsyncDisposable {
  readonly folder: string;
  readonly path: string;
  readonly file: string;
  readonly #process;

  private constructor(folder: string) {
    this.folder = folder;
    this.path = join(folder, "capture.sock");
    this.file = join(folder, "out.tap");
    const words = ["-t", "protobuf:dnstap.Dnstap", "-u", this.path, "-w", this.file];
    this.#process = spawn("fstrm_capture", words, { stdio: "ignore" });
  }

  static async start(): Promise<Capture> {
    const capture = new Capture(mkdtempSync(join(tmpdir(), "portolan-dnstap-")));
    const signal = AbortSignal.timeout(60_000);
    while (!existsSync(capture.path)) {
      signal.throwIfAborted();
      await sleep(20);
    }
    return capture;
  }

  /** Takes a connection of a stream, as if the other side had come to the Unix socket. */
  readonly bridge = (stream: Socket): void => {
    const inner = connect(this.path);
    stream.pipe(inner);
    inner.pipe(stream);
    for (const [one, other] of [
      [stream, inner],
      [inner, stream],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  };

  /** Ends it, and has dnstap-ldns say what it took, a line a message: `CQ 127.0.0.1 UDP 34b "a.example." IN A`. */
  async lines(): Promise<string[]> {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGTERM");
    await ended;
    const { code, output, errors } = await run("dnstap-ldns", ["-q", "-r", this.file]);
    assert.equal(code, 0, errors);
    return output
      .trim()
      .split("\n")
      .map((line) => line.replace(/^\S+ \S+ /, ""));
  }

  /** Its output so far, an octet per character. */
  get text(): string {
    return existsSync(this.file) ? readFileSync(this.file, "latin1") : "";
  }

  /** Resolves when it has written that. It writes some thousand octets at a time, so `more` has to bring more of them. */
  async holds(text: string, more: () => Promise<unknown>): Promise<void> {
    const signal = AbortSignal.timeout(60_000);
    while (!this.text.includes(text)) {
      signal.throwIfAborted();
      await more();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
