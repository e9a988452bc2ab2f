/** The clients `dig` (BIND) and `kdig` (Knot DNS), and what they print. */
import type { Server } from "./dns-client.ts";
import { run } from "./program.ts";

export interface PrintedReply {
  /** `NOERROR`, `NXDOMAIN`, … */
  readonly status: string;
  /** In lower case: qr, aa, tc, rd, ra, ad, cd. */
  readonly flags: readonly string[];
  /** Records as `OWNER TTL CLASS TYPE DATA`, with one space between the words. */
  readonly answer: readonly string[];
  readonly authority: readonly string[];
  readonly additional: readonly string[];
  /** All of the output. */
  readonly text: string;
}

/**
 * Asks once. `words` are as on the command line: name, type, options.
 * @throws where there is no reply
 */
export function dig(server: Server, ...words: readonly string[]): Promise<PrintedReply> {
  return askWith("dig", server, ["+tries=1", "+time=10", ...words]);
}

/** As {@link dig}, with the client of Knot DNS. */
export function kdig(server: Server, ...words: readonly string[]): Promise<PrintedReply> {
  return askWith("kdig", server, ["+retry=0", "+timeout=10", ...words]);
}

async function askWith(
  command: string,
  { address, port }: Server,
  words: readonly string[],
): Promise<PrintedReply> {
  const { code, output, errors } = await run(command, [`@${address}`, "-p", String(port), ...words]);
  if (code !== 0)
    throw new Error(`${command} ${words.join(" ")} ended with exit code ${code}:\n${output}${errors}`);
  return parsePrintedReply(output);
}

export function parsePrintedReply(text: string): PrintedReply {
  const status = /->>HEADER<<-.*status: (\w+)/.exec(text)?.[1];
  const flags = /^;; flags: ([^;]*);/im.exec(text)?.[1];
  if (status === undefined || flags === undefined) throw new Error(`no reply in:\n${text}`);
  return {
    status,
    flags: flags.split(" ").filter((flag) => flag !== ""),
    answer: section(text, "ANSWER"),
    authority: section(text, "AUTHORITY"),
    additional: section(text, "ADDITIONAL"),
    text,
  };
}

function section(text: string, title: string): string[] {
  const start = text.indexOf(`;; ${title} SECTION:\n`);
  if (start < 0) return [];
  const [, ...lines] = (text.slice(start).split("\n\n")[0] ?? "").split("\n");
  return lines.filter((line) => line !== "").map((line) => line.trim().replace(/\s+/g, " "));
}
