/**
 * Quotes words for commands and Corefiles that users copy: clients choose names, and a shell would run their
 * contents.
 */

/** One word of a POSIX shell, whatever its characters. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A name as an argument: one that begins with a hyphen would be taken for a flag. @param name in presentation form */
export function nameWord(name: string): string {
  return shellWord(name.replace(/^-/, "\\045"));
}
