/**
 * The reason why a file cannot be read, in the words of the system alone: "no such file or directory". Node adds its
 * code in front and the path behind, and the surrounding message has these already.
 */
import { messageOf } from "../text/message-of.ts";
export function fileFault(error: unknown): string {
  const message = messageOf(error);
  return /^E[A-Z]+: (.+?), \w+(?: '.*')?$/s.exec(message)?.[1] ?? message;
}
