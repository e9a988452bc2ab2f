/** The last message of a program on standard error, when it cannot start or continue. */
import { jsonFormat, type LogFormatName } from "../lib/logging/log-format.ts";

/** Returns plain text, or a JSON object if the log has objects. */
export function lastWords(message: string, format: LogFormatName): string {
  if (format === "text") return `${message}\n`;
  return `${jsonFormat(Date.now).line({ level: "fatal", message })}\n`;
}
