/** What a program says on standard error when it cannot begin, or go on. */
import { jsonFormat, type LogFormatName } from "../lib/logging/log-format.ts";

/** The text alone, or as the message of an object where the log has objects. */
export function lastWords(message: string, format: LogFormatName): string {
  if (format === "text") return `${message}\n`;
  return `${jsonFormat(Date.now).line({ level: "fatal", message })}\n`;
}
