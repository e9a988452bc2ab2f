import { writeSync } from "node:fs";
import { type LogFields, type LogFormat, type LogLevel, TEXT_FORMAT } from "./log-format.ts";

export type { LogFields, LogLevel } from "./log-format.ts";

/** Receives the reports of a part of the program. A message is one line without its end. */
export interface Logger {
  /** Whether debug lines are printed: check it before building an expensive message. */
  readonly debugEnabled: boolean;
  /** Printed only while debug lines are on. */
  debug(message: string): void;
  /** What happened in the course of things. */
  info(message: string): void;
  /** Something that works, but may not be meant so. */
  warning(message: string): void;
  /** Something that failed, with the reason and what happens next. */
  error(message: string): void;
  /** Whether lines have fields beside their message (`-log-format json`): check it before building expensive fields. */
  readonly takesFields: boolean;
  /** {@link info} with fields beside the message. A text has only the message. */
  infoWith(message: string, fields: LogFields): void;
  /** A line without level and prefix; in JSON it is the message of an object. */
  plain(line: string): void;
  /** A finished JSON object on one line, printed as is in every format. */
  object(line: string): void;
  /** A logger that puts `<prefix>: ` before each message: `child("plugin/reload")`. Prefixes add up. */
  child(prefix: string): Logger;
}

/** Takes finished lines without their line end. */
export interface LineWriter {
  writeLine(line: string): void;
}

/** The least urgent level that is printed. Fatal errors are always printed. */
export const SETTABLE_LEVELS = ["debug", "info", "warning", "error"] as const;
export type SettableLevel = (typeof SETTABLE_LEVELS)[number];

/** The level of the process log, to read and set. */
export interface LevelSetting {
  level: SettableLevel;
}

export interface ProcessLogOptions {
  readonly debugEnabled?: boolean;
  /** `[LEVEL] ` and the message, without a time, unless given. */
  readonly format?: LogFormat;
}

/** The process log. Debug lines appear while `debugEnabled` is set. */
export class ProcessLog implements Logger, LineWriter, LevelSetting {
  /** Settable at any time; loggers made by {@link child} follow. */
  level: SettableLevel;
  readonly format: LogFormat;
  readonly #writer: LineWriter;

  constructor(writer: LineWriter, options: ProcessLogOptions = {}) {
    this.#writer = writer;
    this.format = options.format ?? TEXT_FORMAT;
    this.level = options.debugEnabled === true ? "debug" : "info";
  }

  get debugEnabled(): boolean {
    return this.level === "debug";
  }

  set debugEnabled(on: boolean) {
    this.level = on ? "debug" : "info";
  }

  debug(message: string): void {
    this.write("debug", message);
  }

  info(message: string): void {
    this.write("info", message);
  }

  warning(message: string): void {
    this.write("warning", message);
  }

  error(message: string): void {
    this.write("error", message);
  }

  get takesFields(): boolean {
    return this.format.name === "json";
  }

  infoWith(message: string, fields: LogFields): void {
    this.write("info", message, "", fields);
  }

  plain(line: string): void {
    this.plainLines([line]);
  }

  /** Consecutive lines; in JSON they are the message of one object. */
  plainLines(lines: readonly string[]): void {
    for (const line of this.format.plain(lines)) this.#writer.writeLine(line);
  }

  object(line: string): void {
    this.#writer.writeLine(line);
  }

  child(prefix: string): Logger {
    return new PrefixedLog(this, `${prefix}: `);
  }

  /** @param prefix the source, with a colon and a space */
  write(level: LogLevel, message: string, prefix = "", fields?: LogFields): void {
    if (URGENCY[level] < URGENCY[this.level]) return;
    this.#writer.writeLine(this.format.line({ level, message, prefix, ...(fields && { fields }) }));
  }

  /** A line that the log of another thread has formatted. */
  writeLine(line: string): void {
    this.#writer.writeLine(line);
  }
}

/** Keeps the lines of the process log for a test. Debug lines are on unless the test switches them off. */
export class MemoryLog extends ProcessLog {
  /** Each line as it would have been printed, without its end. */
  readonly lines: string[];

  constructor(options: ProcessLogOptions = {}) {
    const lines: string[] = [];
    super({ writeLine: (line) => lines.push(escapeControls(line)) }, { debugEnabled: true, ...options });
    this.lines = lines;
  }
}

const URGENCY: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warning: 2, error: 3, fatal: 4 };

/** What a {@link LogWriter} writes to: `process.stdout`, any `Writable`, or a test's own. */
export interface LogSink {
  /** Calls back once the text is passed on, or with the error that prevented it. */
  write(text: string, callback: (error?: Error | null) => void): unknown;
  on?(event: "error", listener: (error: Error) => void): unknown;
}

export interface LogWriterOptions {
  /** Lines that may wait for the sink. Default 65,536. */
  readonly maxLines?: number;
  /** How many characters, in all lines together, may wait for the sink. Default 16 Mi. */
  readonly maxCharacters?: number;
  /** Writes around the sink, for {@link LogWriter.flushSync}: usually {@link writeAllSync} on the same descriptor. */
  readonly writeSync?: (text: string) => void;
  /** The format of the line about lost lines: the same as the log's. Text unless given. */
  readonly format?: LogFormat;
}

/**
 * The only queue between the program and the reader of its log.
 *
 * The lines of one event-loop turn are written together. If the sink does not take them (a pipe without a reader),
 * lines wait up to the bounds; further lines are dropped and counted, and one line reports their number once the sink
 * accepts writes again. The same happens when the sink fails. Control characters inside a line are escaped, so that
 * no octet of a DNS name can end a line or control a terminal.
 */
export class LogWriter implements LineWriter {
  readonly #sink: LogSink;
  readonly #maxLines: number;
  readonly #maxCharacters: number;
  readonly #writeSync: ((text: string) => void) | undefined;
  readonly #format: LogFormat;
  #pending = "";
  #pendingLines = 0;
  #inFlightLines = 0;
  #inFlightCharacters = 0;
  #inFlight = false;
  #scheduled = false;
  #accepted = 0;
  #finished = 0;
  #dropped = 0;
  #unreported = 0;
  #waiting: { readonly until: number; readonly resolve: () => void }[] = [];

  constructor(sink: LogSink, options: LogWriterOptions = {}) {
    this.#sink = sink;
    this.#maxLines = options.maxLines ?? 65_536;
    this.#maxCharacters = options.maxCharacters ?? 16 * 1024 * 1024;
    this.#writeSync = options.writeSync;
    this.#format = options.format ?? TEXT_FORMAT;
    // The callback of each write gets the same error; without a listener the event would end the process.
    sink.on?.("error", () => undefined);
  }

  /** Lines lost since the start. */
  get dropped(): number {
    return this.#dropped;
  }

  writeLine(line: string): void {
    const escaped = escapeControls(line);
    const characters = this.#pending.length + this.#inFlightCharacters + escaped.length + 1;
    if (this.#pendingLines + this.#inFlightLines >= this.#maxLines || characters > this.#maxCharacters) {
      this.#dropped++;
      this.#unreported++;
      return;
    }
    this.#append(escaped);
    if (this.#scheduled || this.#inFlight) return;
    this.#scheduled = true;
    setImmediate(this.#flushScheduled);
  }

  /** Resolves when every line written so far is out or lost. Waits as long as the sink does. */
  flush(): Promise<void> {
    if (!this.#inFlight) this.#send();
    const until = this.#accepted;
    if (this.#finished >= until) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ until, resolve }));
  }

  /**
   * Writes the waiting lines before it returns, for the last lines of a process. Lines that the sink already holds
   * are left to it. Does nothing without the option `writeSync`. If that throws (the reader is gone, or the disk is
   * full), the lines are lost, so that the process can still end in order.
   */
  flushSync(): void {
    if (this.#writeSync === undefined) return;
    const batch = this.#takeBatch();
    if (batch.text === "") return;
    try {
      this.#writeSync(batch.text);
    } catch {
      this.#dropped += batch.lines;
    }
    this.#finish(batch.lines);
  }

  readonly #flushScheduled = (): void => {
    this.#scheduled = false;
    if (!this.#inFlight) this.#send();
  };

  #append(escaped: string): void {
    this.#pending += `${escaped}\n`;
    this.#pendingLines++;
    this.#accepted++;
  }

  #takeBatch(): { text: string; lines: number } {
    if (this.#unreported > 0) {
      const lines = this.#unreported === 1 ? "1 log line was" : `${this.#unreported} log lines were`;
      const message = `${lines} dropped: the reader of the log did not keep up`;
      this.#append(this.#format.line({ level: "warning", message }));
      this.#unreported = 0;
    }
    const batch = { text: this.#pending, lines: this.#pendingLines };
    this.#pending = "";
    this.#pendingLines = 0;
    return batch;
  }

  #send(): void {
    if (this.#pendingLines === 0 && this.#unreported === 0) return;
    const unreported = this.#unreported;
    const { text, lines } = this.#takeBatch();
    this.#inFlight = true;
    this.#inFlightLines = lines;
    this.#inFlightCharacters = text.length;
    let answered = false;
    const done = (error?: Error | null): void => {
      if (answered) return;
      answered = true;
      this.#inFlight = false;
      this.#inFlightLines = 0;
      this.#inFlightCharacters = 0;
      if (error) {
        // The report of earlier losses is among the lost lines, and does not count as a loss.
        this.#dropped += unreported > 0 ? lines - 1 : lines;
        this.#unreported += unreported > 0 ? lines - 1 + unreported : lines;
      }
      this.#finish(lines);
      if (error && this.#pendingLines === 0) return;
      this.#send();
    };
    try {
      this.#sink.write(text, done);
    } catch (error) {
      setImmediate(done, error instanceof Error ? error : new Error(String(error)));
    }
  }

  #finish(lines: number): void {
    this.#finished += lines;
    if (this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const waiter of waiting) {
      if (waiter.until <= this.#finished) waiter.resolve();
      else this.#waiting.push(waiter);
    }
  }
}

/**
 * Writes the whole text to a descriptor before it returns, also to a pipe in non-blocking mode, where it tries
 * again until `patienceMs` have passed.
 *
 * @throws the error of the last attempt (EAGAIN if the reader did not keep up).
 */
export function writeAllSync(fd: number, text: string, patienceMs = 1000): void {
  const octets = Buffer.from(text);
  const deadline = performance.now() + patienceMs;
  const sleep = new Int32Array(new SharedArrayBuffer(4));
  for (let written = 0; written < octets.length; ) {
    try {
      written += writeSync(fd, octets, written);
    } catch (error) {
      const busy = error instanceof Error && "code" in error && error.code === "EAGAIN";
      if (!busy || performance.now() >= deadline) throw error;
      Atomics.wait(sleep, 0, 0, 5);
    }
  }
}

/**
 * Makes a text safe as part of one line: control characters, bidirectional controls and the Unicode line separators
 * become `\
 * `, `\\r`, `\\t`, `\\xHH` or `\\uHHHH`. Backslashes stay as they are.
 */
export function escapeControls(text: string): string {
  return CONTROL.test(text) ? text.replaceAll(EVERY_CONTROL, escapeCharacter) : text;
}

class PrefixedLog implements Logger {
  readonly #root: ProcessLog;
  readonly #prefix: string;

  constructor(root: ProcessLog, prefix: string) {
    this.#root = root;
    this.#prefix = prefix;
  }

  get debugEnabled(): boolean {
    return this.#root.debugEnabled;
  }

  debug(message: string): void {
    if (this.#root.debugEnabled) this.#root.write("debug", message, this.#prefix);
  }

  info(message: string): void {
    this.#root.write("info", message, this.#prefix);
  }

  warning(message: string): void {
    this.#root.write("warning", message, this.#prefix);
  }

  error(message: string): void {
    this.#root.write("error", message, this.#prefix);
  }

  get takesFields(): boolean {
    return this.#root.takesFields;
  }

  infoWith(message: string, fields: LogFields): void {
    this.#root.write("info", message, this.#prefix, fields);
  }

  plain(line: string): void {
    this.#root.plain(line);
  }

  object(line: string): void {
    this.#root.object(line);
  }

  child(prefix: string): Logger {
    return new PrefixedLog(this.#root, `${this.#prefix}${prefix}: `);
  }
}

const CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u;
const EVERY_CONTROL = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

function escapeCharacter(character: string): string {
  switch (character) {
    case "\n":
      return "\\n";
    case "\r":
      return "\\r";
    case "\t":
      return "\\t";
  }
  const code = character.charCodeAt(0);
  return code <= 0xff
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}
