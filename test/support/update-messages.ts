/** Updates (RFC 2136) octet by octet, signed and sent, and what becomes of a zone by them. */

import { decodeMessage, encodeMessage, type Message, makeQuery } from "../../src/dns/message.ts";
import { Name } from "../../src/dns/name.ts";
import { Flag, Opcode, rcodeName } from "../../src/dns/numbers.ts";
import { formatRecord, parseRecord, plainData } from "../../src/dns/resource-record.ts";
import { DEFAULT_TSIG_ALGORITHM } from "../../src/dns/tsig/algorithms.ts";
import { TsigExchange } from "../../src/dns/tsig/exchange.ts";
import { parseRecordType, RecordType } from "../../src/dns/type-names.ts";
import { WireError } from "../../src/dns/wire-reader.ts";
import { exchangeUdp, type Server, TcpClient } from "./dns-client.ts";
import { hex, rawMessage, rawQuestion } from "./raw-message.ts";

export const SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const WRONG_SECRET = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

/** One update of a zone that nothing else changes. */
export interface UpdateRow {
  readonly title: string;
  /** Name of the key in `example.`; `undefined` for no signature. Default: `all`, which may change everything. */
  readonly key?: string | undefined;
  readonly fault?: "wrong time" | "wrong secret" | "changed after it was signed";
  /** `NAME TYPE CLASS`, each. Default: the zone's SOA record. */
  readonly questions?: readonly string[];
  /** `NAME TTL CLASS TYPE [DATA]`; names without a dot at the end are in the zone, `@` is the zone. */
  readonly prerequisites?: readonly string[];
  readonly updates?: readonly string[];
  /** Octets that come behind everything, in hex. */
  readonly trailing?: string;
  /** Added to the number of records that the header says are updates. */
  readonly missing?: number;
  /** Lines of `dynupdate`. */
  readonly options?: readonly string[];
  /** Another zone file than {@link SEED}. */
  readonly seed?: string;
}

/** The reply, and the zone afterwards. */
export interface UpdateOutcome {
  /** With the error of TSIG, where there is one. `nothing` where no reply came. */
  readonly rcode: string;
  readonly authoritative: boolean;
  /** Records that went and came, without the origin. */
  readonly change: readonly string[];
}

export const SEED = `$TTL 60
@ SOA ns1 host 7 3600 600 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.2
www A 192.0.2.3
www TXT "Text"
alias CNAME www
few TXT "one"
few A 192.0.2.4
sub NS ns.sub
ns.sub A 192.0.2.5
*.wild A 192.0.2.6
a.b A 192.0.2.7
`;

export function zoneOfRow(index: number): string {
  return `r${index}.test.`;
}

/** The name of a row's zone file beside the Corefile, and its text. */
export function seedsOf(rows: readonly UpdateRow[]): Record<string, string> {
  const own = rows.flatMap(({ seed }, index) => (seed === undefined ? [] : [[`db${index}`, seed]]));
  return { db: SEED, ...Object.fromEntries(own) };
}

/** A server block for each row, with a zone of its own. It starts with CoreDNS and with Portolan. */
export function corefileOf(rows: readonly UpdateRow[], port: number): string {
  return rows
    .map(
      ({ options = [], seed }, index) => `${zoneOfRow(index)}:${port} {
    bind 127.0.0.1
    tsig {
        secret all.example. ${SECRET}
        secret few.example. ${SECRET}
        secret txt.example. ${SECRET}
        secret apex.example. ${SECRET}
        secret idle.example. ${SECRET}
    }
    transfer {
        to *
    }
    dynupdate {
        file ${seed === undefined ? "db" : `db${index}`}
        allow all.example. * *
        allow few.example. few.${zoneOfRow(index)} TXT ANY
        allow txt.example. * TXT
        allow apex.example. @ *
${options.map((line) => `        ${line}\n`).join("")}    }
}
`,
    )
    .join("");
}

/** Seconds. */
const HOUR = 3600;

export function tsigOf(key: string, secret = SECRET, late = 0): TsigExchange {
  return new TsigExchange(
    {
      name: Name.parse(`${key}.example.`),
      secret: Buffer.from(secret, "base64"),
      algorithm: DEFAULT_TSIG_ALGORITHM,
    },
    () => Math.floor(Date.now() / 1000) - late,
  );
}

/** The message of a row, with its signature. */
export function octetsOf(row: UpdateRow, zone: string): Uint8Array {
  const { key = "key" in row ? undefined : "all", fault, missing = 0 } = row;
  const { questions = ["@ SOA IN"], prerequisites = [], updates = [] } = row;
  const message = rawMessage(
    {
      id: Math.floor(Math.random() * 0x10000),
      flags: Opcode.UPDATE << 11,
      counts: [questions.length, prerequisites.length, updates.length + missing, 0],
    },
    ...questions.map((question) => questionOf(question, zone)),
    ...prerequisites.map((record) => recordOf(record, zone)),
    ...updates.map((record) => recordOf(record, zone)),
    hex(row.trailing ?? ""),
  );
  if (key === undefined) return message;
  const secret = fault === "wrong secret" ? WRONG_SECRET : SECRET;
  const signed = tsigOf(key, secret, fault === "wrong time" ? HOUR : 0).sign(message);
  // The flag CD.
  if (fault === "changed after it was signed") signed[3] = (signed[3] ?? 0) ^ 0x10;
  return signed;
}

function questionOf(text: string, zone: string): Buffer {
  const [name = "", type = "", word = ""] = text.split(" ");
  return rawQuestion(fullName(name, zone).wire as Buffer, typeNumber(type), classNumber(word));
}

function recordOf(text: string, zone: string): Buffer {
  const [name = "", ttl = "", word = "", type = "", ...data] = text.split(" ");
  const head = Buffer.alloc(10);
  head.writeUInt16BE(typeNumber(type), 0);
  head.writeUInt16BE(classNumber(word), 2);
  head.writeUInt32BE(Number(ttl), 4);
  const octets = data.length === 0 ? Buffer.alloc(0) : dataOf(type, data.join(" "), zone);
  head.writeUInt16BE(octets.length, 8);
  return Buffer.concat([fullName(name, zone).wire, head, octets]);
}

function dataOf(type: string, text: string, zone: string): Uint8Array {
  if (text.startsWith("hex ")) return hex(text.slice(4));
  return plainData(parseRecord(`${zone} 0 IN ${type} ${text.replaceAll("@", zone)}`));
}

function fullName(name: string, zone: string): Name {
  if (name === "@") return Name.parse(zone);
  return Name.parse(name.endsWith(".") ? name : `${name}.${zone}`);
}

function typeNumber(word: string): number {
  const type = parseRecordType(word);
  if (type === undefined) throw new Error(`unknown type ${word}`);
  return type;
}

function classNumber(word: string): number {
  const number = { IN: 1, CH: 3, NONE: 254, ANY: 255 }[word];
  if (number === undefined) throw new Error(`unknown class ${word}`);
  return number;
}

/** Sends a message over UDP, or over TCP where it is large. @returns `undefined` where no reply comes in time */
export async function exchange(
  server: Server,
  octets: Uint8Array,
  patience?: number,
): Promise<Uint8Array | undefined> {
  if (octets.length <= MOST_DATAGRAM) return exchangeUdp(server, octets, patience);
  await using client = await TcpClient.connect(server);
  client.send(octets);
  return await client.receive(patience);
}

const MOST_DATAGRAM = 1232;

/** The records of a zone by AXFR, sorted; names in the zone are without its name. */
export async function recordsOf(server: Server, zone: string, key?: string): Promise<string[]> {
  const query = encodeMessage(
    makeQuery({ name: Name.parse(zone), type: RecordType.AXFR }, { id: 1, flags: 0 }),
  );
  const exchange = key === undefined ? undefined : tsigOf(key);
  await using client = await TcpClient.connect(server);
  client.send(exchange?.sign(query) ?? query);
  const records: string[] = [];
  for (let soas = 0; soas < 2; ) {
    const reply = await client.receive();
    if (reply === undefined) throw new Error(`the transfer of ${zone} ended early`);
    const { rcode, answer } = decodeMessage(exchange?.verify(reply) ?? reply);
    if (rcode !== 0 || answer.length === 0) throw new Error(`no transfer of ${zone}: ${rcodeName(rcode)}`);
    for (const record of answer) {
      if (record.type === RecordType.SOA) soas++;
      if (soas < 2) records.push(lineOf(formatRecord(record), zone));
    }
  }
  return records.toSorted();
}

function lineOf(record: string, zone: string): string {
  return record.replaceAll("\t", " ").replaceAll(zone, "@").replaceAll(".@", "");
}

/** @param patience milliseconds that a reply is waited for */
export async function outcomeOf(
  server: Server,
  row: UpdateRow,
  zone: string,
  patience?: number,
): Promise<UpdateOutcome> {
  const before = await recordsOf(server, zone);
  const reply = await exchange(server, octetsOf(row, zone), patience);
  // CoreDNS accepts some records that cannot be read.
  const after = await recordsOf(server, zone).catch((error: unknown) => {
    if (error instanceof WireError) return ["an unreadable record"];
    throw error;
  });
  const went = before.filter((line) => !after.includes(line)).map((line) => `-${line}`);
  const came = after.filter((line) => !before.includes(line)).map((line) => `+${line}`);
  const change = [...went, ...came];
  if (reply === undefined) return { rcode: "nothing", authoritative: false, change };
  const message = decodeMessage(reply);
  const authoritative = (message.flags & Flag.AA) !== 0;
  return { rcode: rcodeOf(message), authoritative, change };
}

function rcodeOf({ rcode, additional }: Message): string {
  const signature = additional.find(({ type }) => type === RecordType.TSIG);
  const { data } = signature ?? {};
  const error =
    typeof data === "object" && data !== null && "error" in data && typeof data.error === "number"
      ? data.error
      : 0;
  return error === 0 ? rcodeName(rcode) : `${rcodeName(rcode)} (TSIG error ${error})`;
}
