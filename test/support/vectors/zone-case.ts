/** Cases of `zones/` in their recorded format, queried over a server's sockets. */
import assert from "node:assert/strict";
import { decodeMessage, encodeMessage, type Message, makeQuery } from "../../../src/dns/message.ts";
import { Opcode, parseClass } from "../../../src/dns/numbers.ts";
import { SOA, TSIG } from "../../../src/dns/record-table.ts";
import { parseRecord } from "../../../src/dns/resource-record.ts";
import { tsigAlgorithm } from "../../../src/dns/tsig/algorithms.ts";
import { TsigError, TsigExchange } from "../../../src/dns/tsig/exchange.ts";
import { parseRecordType } from "../../../src/dns/type-names.ts";
import { exchangeUdp, TcpClient } from "../dns-client.ts";
import { answerText, completeAnswer, nameOf, parseFlags } from "./vector-text.ts";

interface RecordedSignature {
  readonly name: string;
  readonly alg: string;
  readonly mac_len: number;
  readonly error: number;
  readonly other_len: number;
  readonly time: string;
}

export interface RecordedReply {
  readonly rcode: string;
  readonly flags: readonly string[];
  readonly opcode?: string;
  readonly question: readonly string[];
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
  readonly additional?: readonly string[];
  readonly edns?: { readonly size: number; readonly version: number; readonly do: boolean };
  readonly tsig?: RecordedSignature;
  /** In place of the records, where there are many. */
  readonly answer_count?: number;
}

export interface RecordedCase {
  readonly q: {
    readonly name: string;
    readonly type: string;
    readonly class?: string;
    readonly transport: "udp" | "tcp";
    readonly flags?: readonly string[];
    readonly opcode?: string;
    readonly authority?: readonly string[];
    readonly edns?: { readonly size: number; readonly do: boolean };
    readonly tsig?: {
      readonly name: string;
      readonly secret: string;
      readonly alg?: string;
      readonly time_offset?: number;
      readonly fudge?: number;
      readonly bad_mac?: boolean;
      readonly truncate?: number;
    };
  };
  readonly r?: RecordedReply | "none";
  readonly messages?: readonly RecordedReply[];
}

/** Records of a transfer stand in any order between the SOA records. */
function inOrder<T extends ComparableReply["answer"]>(answer: T): T {
  const isTransfer = / [AI]XFR$/.test(answer.question[0] ?? "");
  return isTransfer ? { ...answer, answer: answer.answer?.toSorted() } : answer;
}

/** Of long transfers the vectors have the number of records alone. */
function isCounted({ messages }: RecordedCase): boolean {
  return messages?.some(({ answer }) => answer === undefined) === true;
}

const counted = (count: number): readonly string[] => [`${count} records`];

/** All messages of a transfer as one: how many there are is the server's own affair. */
function recordedAnswer(asked: RecordedCase): readonly string[] {
  const { r, messages = [] } = asked;
  if (r !== undefined) return r === "none" ? [] : (r.answer ?? []);
  const count = messages.reduce(
    (sum, { answer, answer_count: number }) => sum + (number ?? answer?.length ?? 0),
    0,
  );
  return isCounted(asked) ? counted(count) : messages.flatMap(({ answer }) => answer ?? []);
}

/** Without a signature in the words of the vectors, and what the signature says beside it. */
export interface ComparableReply {
  readonly answer: ReturnType<typeof answerText>;
  readonly signature: unknown;
}

/** The recording: the reply, the records of a transfer in its first message, or silence. */
export function recordedReply(asked: RecordedCase): ComparableReply | undefined {
  const { r, messages } = asked;
  const reply = r ?? messages?.[0] ?? "none";
  if (reply === "none") return undefined;
  const { tsig } = reply;
  return {
    answer: inOrder(
      completeAnswer({
        rcode: reply.rcode,
        flags: reply.flags.join(" ").toUpperCase(),
        ...(reply.opcode !== undefined && { opcode: reply.opcode }),
        question: reply.question,
        answer: recordedAnswer(asked),
        authority: reply.authority ?? [],
        additional: reply.additional ?? [],
        edns: reply.edns === undefined ? null : ednsOf(reply.edns),
      }),
    ),
    signature:
      tsig === undefined
        ? undefined
        : {
            name: tsig.name,
            alg: tsig.alg,
            macLength: tsig.mac_len,
            error: tsig.error,
            otherLength: tsig.other_len,
            isValid: tsig.mac_len > 0,
          },
  };
}

function ednsOf({ size, version, do: dnssecOk }: NonNullable<RecordedReply["edns"]>) {
  return { size, version, do: dnssecOk, options: [] };
}

/** @param now wall time of the server in seconds */
export async function askCase(
  port: number,
  asked: RecordedCase,
  now: number,
  patience?: number,
): Promise<ComparableReply | undefined> {
  const { q } = asked;
  const { octets, exchange } = signedQuery(q, now);
  const [reply, ...others] = await send(port, q, octets, patience);
  if (reply === undefined) return undefined;
  const first = decodeMessage(reply);
  const answer = [...first.answer, ...others.flatMap((each) => decodeMessage(each).answer)];
  const message = isCounted(asked) ? first : { ...first, answer };
  const shown = (text: ReturnType<typeof answerText>) =>
    isCounted(asked) ? { ...text, answer: counted(answer.length) } : inOrder(text);
  const last = message.additional.at(-1);
  if (last === undefined || !TSIG.is(last))
    return { answer: shown(answerText(message)), signature: undefined };
  const { data } = last;
  return {
    answer: shown(answerText({ ...message, additional: message.additional.slice(0, -1) })),
    signature: {
      name: last.name.toString(),
      alg: data.algorithm.toString().replace(/\.$/, ""),
      macLength: data.mac.length,
      error: data.error,
      otherLength: data.otherData.length,
      isValid: data.mac.length > 0 && isValid(exchange, reply),
    },
  };
}

function isValid(exchange: TsigExchange | undefined, reply: Uint8Array): boolean {
  try {
    exchange?.verify(reply);
    return exchange !== undefined;
  } catch (error) {
    // Its MAC was right, else it would not be believed.
    return error instanceof TsigError && error.code !== 0;
  }
}

function signedQuery(
  q: RecordedCase["q"],
  now: number,
): { octets: Uint8Array; exchange: TsigExchange | undefined } {
  const plain = encodeMessage(messageOf(q));
  const { tsig } = q;
  if (tsig === undefined) return { octets: plain, exchange: undefined };
  const word = tsig.alg ?? "hmac-sha256";
  const name = nameOf(word === "hmac-md5" ? "hmac-md5.sig-alg.reg.int" : word);
  const known = tsigAlgorithm(name);
  const key = {
    name: nameOf(tsig.name),
    secret: Buffer.from(tsig.secret, "base64"),
    // Of those that nobody knows, any MAC will do.
    algorithm: known ?? { name, hash: "sha256", octets: 32 },
  };
  const offset = tsig.time_offset ?? 0;
  const exchange = new TsigExchange(key, () => now + offset, tsig.fudge);
  const signed = exchange.sign(plain);
  if (tsig.bad_mac !== true && tsig.truncate === undefined) return { octets: signed, exchange };
  return { octets: spoiled(signed, tsig), exchange };
}

function spoiled(signed: Uint8Array, tsig: { bad_mac?: boolean; truncate?: number }): Uint8Array {
  const message = decodeMessage(signed);
  const record = message.additional.at(-1);
  assert.ok(record !== undefined && TSIG.is(record));
  const mac = record.data.mac.slice(0, tsig.truncate ?? record.data.mac.length);
  if (tsig.bad_mac === true) mac[0] = (mac[0] ?? 0) ^ 1;
  const changed = { ...record, data: { ...record.data, mac } };
  return encodeMessage({ ...message, additional: [...message.additional.slice(0, -1), changed] });
}

function messageOf(q: RecordedCase["q"]): Message {
  const type = parseRecordType(q.type);
  const opcode = Object.entries(Opcode).find(([name]) => name === (q.opcode ?? "QUERY"))?.[1];
  assert.ok(type !== undefined && opcode !== undefined);
  const message = makeQuery(
    { name: nameOf(q.name), type, class: parseClass(q.class ?? "IN") ?? 1 },
    {
      id: 0x1234,
      flags: parseFlags((q.flags ?? []).join(" ")),
      ...(q.edns && { edns: { udpSize: q.edns.size, version: 0, dnssecOk: q.edns.do, options: [] } }),
    },
  );
  return { ...message, opcode, authority: (q.authority ?? []).map((line) => parseRecord(line)) };
}

/** The reply, or all messages of a transfer. */
async function send(
  port: number,
  { transport, type }: RecordedCase["q"],
  octets: Uint8Array,
  patience?: number,
): Promise<readonly Uint8Array[]> {
  const server = { address: "127.0.0.1", port };
  if (transport === "udp")
    return [await exchangeUdp(server, octets, patience)].filter((each) => each !== undefined);
  await using client = await TcpClient.connect(server);
  client.send(octets);
  const messages: Uint8Array[] = [];
  for (let boundaries = 0; ; ) {
    const message = await client.receive();
    if (message === undefined) return messages;
    messages.push(message);
    const { answer, rcode } = decodeMessage(message);
    boundaries += answer.filter((record) => SOA.is(record)).length;
    const isAlone = messages.length === 1 && answer.length <= 1;
    if (!type.endsWith("XFR") || rcode !== 0 || boundaries !== 1 || isAlone) return messages;
  }
}
