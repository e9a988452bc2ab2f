/** Zones that go from server to server: their text, and what the servers have of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { decodeMessage } from "../../src/dns/message.ts";
import { SOA } from "../../src/dns/record-table.ts";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { ask, queryOctets, TcpClient } from "./dns-client.ts";

const PATIENCE = 30_000;

/** Some 2,000 records of example.org; `address` is that of www. */
export function zoneText(serial: number, address: string): string[] {
  const lines = [
    "$TTL 60",
    `@ SOA ns h ${serial} 3600 3600 86400 5`,
    "@ NS ns",
    "ns A 192.0.2.53",
    `www A ${address}`,
    '*.w TXT "w"',
  ];
  for (let index = 0; index < 2_000; index++) lines.push(`h${index} A 10.0.${index >> 8}.${index & 255}`);
  return lines;
}

export async function serialOf(port: number, zone = "example.org."): Promise<number | undefined> {
  const { answer } = await ask({ address: "127.0.0.1", port }, zone, "SOA");
  const [record] = answer;
  return record !== undefined && SOA.is(record) ? record.data.serial : undefined;
}

export async function untilSerial(
  port: number,
  serial: number,
  describe: () => string,
  zone = "example.org.",
): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  while ((await serialOf(port, zone)) !== serial) {
    if (performance.now() > deadline) throw new Error(`no serial ${serial} in time:\n${describe()}`);
  }
}

/** RDATA of the address of www.example.org. */
export async function addressOf(port: number): Promise<unknown> {
  const { answer } = await ask({ address: "127.0.0.1", port }, "www.example.org.", "A");
  return answer[0]?.data;
}

/** Waits for another address of www.example.org: where NSD has a new state, its former processes may answer once more after the new ones. */
export async function untilAddress(port: number, address: string, describe: () => string): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  while (!isDeepStrictEqual(await addressOf(port), { address })) {
    if (performance.now() > deadline) throw new Error(`no address ${address} in time:\n${describe()}`);
  }
}

/** One sample of a server's metrics, 0 if it is absent. */
export function sampleOf(metrics: string, sample: string): number {
  const line = metrics.split("\n").find((each) => each.startsWith(`${sample} `));
  return line === undefined ? 0 : Number(line.slice(sample.length + 1));
}

export async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-transfers-"));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All records of a zone that a server hands out, sorted, the SOA record once. */
export async function copyOf(port: number, zone: string): Promise<readonly string[]> {
  await using client = await TcpClient.connect({ address: "127.0.0.1", port });
  client.send(queryOctets(zone, "AXFR"));
  const records = new Set<string>();
  for (let boundaries = 0; boundaries < 2; ) {
    const octets = await client.receive();
    if (octets === undefined) return [];
    const { answer, rcode } = decodeMessage(octets);
    if (rcode !== 0) return [];
    for (const record of answer) records.add(formatRecord(record));
    boundaries += answer.filter((record) => SOA.is(record)).length;
  }
  return [...records].sort();
}
