/**
 * The format of a line of the process log: text for people, or a JSON object for programs
 * (docs/spec/coredns-behaviour.md#process-log).
 */

/** The levels of the process log, least urgent first. */
export type LogLevel = "debug" | "info" | "warning" | "error" | "fatal";

export const LOG_FORMATS = ["text", "json"] as const;
export type LogFormatName = (typeof LOG_FORMATS)[number];

/** Values of a line beside its message. */
export type LogFields = Readonly<Record<string, string | number | boolean | null>>;

/** The contents of a line. */
export interface LogEntry {
  readonly level: LogLevel;
  readonly message: string;
  /** The source: `plugin/reload: `, or nothing for the program itself. */
  readonly prefix?: string;
  /** Omitted in text format, where the message contains them. */
  readonly fields?: LogFields;
}

export interface LogFormat {
  readonly name: LogFormatName;
  line(entry: LogEntry): string;
  /** Lines without a level, such as the list of zones at the start. */
  plain(lines: readonly string[]): string[];
}

/** `[WARNING] plugin/reload: ` and the message. */
export const TEXT_FORMAT: LogFormat = {
  name: "text",
  line: ({ level, message, prefix = "" }) => LEVEL_PREFIX[level] + prefix + message,
  plain: (lines) => [...lines],
};

/**
 * One object per line: `time`, `level`, `msg`, and `plugin` for lines of a plugin.
 * @param wallTime milliseconds since the Unix epoch
 */
export function jsonFormat(wallTime: () => number): LogFormat {
  const line = ({ level, message, prefix = "", fields }: LogEntry): string => {
    const [, plugin, rest] = PLUGIN_PREFIX.exec(prefix) ?? [];
    return toJsonLine({
      time: new Date(wallTime()).toISOString(),
      level: LEVEL_NAME[level],
      msg: (rest ?? prefix) + message,
      ...(plugin !== undefined && { plugin }),
      ...fields,
    });
  };
  return {
    name: "json",
    line,
    plain: (lines) => (lines.length === 0 ? [] : [line({ level: "info", message: lines.join("\n") })]),
  };
}

/** The format of that name. */
export function logFormat(name: LogFormatName, wallTime: () => number): LogFormat {
  return name === "json" ? jsonFormat(wallTime) : TEXT_FORMAT;
}

/**
 * An object as one line that is safe for terminals and line readers: characters that JSON leaves as they are, and
 * that the text format escapes, become `\\uHHHH`.
 */
export function toJsonLine(value: unknown): string {
  return JSON.stringify(value).replaceAll(UNSAFE, escapeCharacter);
}

const LEVEL_PREFIX: Readonly<Record<LogLevel, string>> = {
  debug: "[DEBUG] ",
  info: "[INFO] ",
  warning: "[WARNING] ",
  error: "[ERROR] ",
  fatal: "[FATAL] ",
};

const LEVEL_NAME: Readonly<Record<LogLevel, string>> = {
  debug: "DEBUG",
  info: "INFO",
  warning: "WARN",
  error: "ERROR",
  fatal: "FATAL",
};

const PLUGIN_PREFIX = /^plugin\/([^:]+): (.*)$/s;
/** The characters that `escapeControls` escapes, without those that JSON escapes itself. */
const UNSAFE = /[\u007f-\u009f\p{Bidi_Control}\u2028\u2029]/gu;

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
