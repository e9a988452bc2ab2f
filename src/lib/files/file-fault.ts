/**
 * Why a file cannot be read, in the words of the system alone: "no such file or directory". Node puts its code in front and the path behind,
 * which the message around it says already.
 */
import { messageOf } from "../text/message-of.ts";
export function fileFault(error: unknown): string {
  const message = messageOf(error);
  return /^E[A-Z]+: (.+?), \w+(?: '.*')?$/s.exec(message)?.[1] ?? message;
}
