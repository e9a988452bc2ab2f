/**
 * Asks from inside of a network that only a program of its own can be in: runs as one, with questions in JSON as its argument, and
 * prints the answers in their order.
 */
import { fileURLToPath } from "node:url";
import { decodeMessage } from "../../src/dns/message.ts";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { exchangeUdp, queryOctets, TcpClient } from "./dns-client.ts";
import type { NetworkNamespace } from "./network-namespace.ts";

/** Where to ask, and how: for a TXT record, or for a page. */
export interface Question {
  readonly way: "udp" | "tcp" | "http";
  readonly address: string;
  readonly port: number;
  /** A name, or a path. */
  readonly what: string;
}

/** @returns for each question the text of the TXT record or the status of the page; else what stands in the way */
export async function askInside(
  namespace: NetworkNamespace,
  questions: readonly Question[],
): Promise<readonly string[]> {
  const words = [process.execPath, fileURLToPath(import.meta.url), JSON.stringify(questions)];
  return JSON.parse(await namespace.run(...words));
}

async function answerTo({ way, address, port, what }: Question): Promise<string> {
  try {
    if (way === "http") {
      const host = address.includes(":") ? `[${address}]` : address;
      const response = await fetch(`http://${host}:${port}${what}`);
      await response.arrayBuffer();
      return String(response.status);
    }
    const octets = queryOctets(what, "TXT");
    const reply =
      way === "udp"
        ? await exchangeUdp({ address, port }, octets, 2_000)
        : await overTcp(address, port, octets);
    if (reply === undefined) return "no answer";
    const [record] = decodeMessage(reply).answer;
    return record === undefined ? "no record" : (/"(.*)"/.exec(formatRecord(record))?.[1] ?? "no text");
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
  }
}

async function overTcp(address: string, port: number, octets: Uint8Array): Promise<Uint8Array | undefined> {
  await using client = await TcpClient.connect({ address, port });
  client.send(octets);
  return await client.receive();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const answers: string[] = [];
  for (const question of JSON.parse(process.argv[2] ?? "[]")) answers.push(await answerTo(question));
  process.stdout.write(JSON.stringify(answers));
}
