/** The table of Kubernetes' DNS rules, put to a server over TCP. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { decodeMessage, encodeMessage, type Message } from "../../src/dns/message.ts";
import { Flag, Rcode, rcodeName } from "../../src/dns/numbers.ts";
import type { ResourceRecord } from "../../src/dns/record-kind.ts";
import { formatRecord, parseRecord } from "../../src/dns/resource-record.ts";
import { RecordType } from "../../src/dns/type-names.ts";
import {
  type Expectation,
  type RuleCase,
  type RuleGroup,
  wholeOf,
} from "../fixtures/kubernetes/rule-case.ts";
import { OUTSIDE } from "../fixtures/kubernetes/rules.ts";
import { queryOctets, type Server, TcpClient } from "./dns-client.ts";
import { untilTrue } from "./until-true.ts";

/** A server block that holds a group's cluster, with the world outside of it elsewhere. */
export function ruleBlock(group: RuleGroup, source: string, port: number, outside: OutsideWorld): string {
  return [
    `.:${port} {`,
    "  bind 127.0.0.1",
    `  kubernetes ${group.zones ?? "cluster.local in-addr.arpa ip6.arpa"} {`,
    `    ${source}`,
    ...group.options.map((option) => `    ${option}`),
    "  }",
    `  forward . 127.0.0.1:${outside.port} {`,
    "    prefer_udp",
    "  }",
    "}",
    "",
  ].join("\n");
}

export interface Outside {
  /** Default {@link OUTSIDE}. */
  readonly records?: readonly string[];
  /** Names, absolute, whose answers are cut off, so that TC is set and no record comes. */
  readonly cut?: readonly string[];
}

/** A resolver that knows the names outside of the cluster, and that nothing else exists. */
export class OutsideWorld implements AsyncDisposable {
  readonly #socket = createSocket("udp4");
  readonly #records: readonly ResourceRecord[];
  readonly #cut: ReadonlySet<string>;

  private constructor({ records = OUTSIDE, cut = [] }: Outside) {
    this.#records = records.map((line) => parseRecord(line));
    this.#cut = new Set(cut);
    this.#socket.on("message", (octets, { port, address }) => {
      this.#socket.send(this.#answer(decodeMessage(octets)), port, address);
    });
  }

  static async start(outside: Outside = {}): Promise<OutsideWorld> {
    const world = new OutsideWorld(outside);
    world.#socket.bind(0, "127.0.0.1");
    await once(world.#socket, "listening");
    return world;
  }

  get port(): number {
    return this.#socket.address().port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#socket, "close");
    this.#socket.close();
    await closed;
  }

  #answer(query: Message): Uint8Array {
    const [question] = query.questions;
    const named = this.#records.filter(({ name }) => question !== undefined && name.equals(question.name));
    const isCut = this.#cut.has(String(question?.name));
    const answer = isCut ? [] : named.filter(({ type }) => type === question?.type);
    const rcode = named.length === 0 && !isCut ? Rcode.NXDOMAIN : Rcode.NOERROR;
    return encodeMessage({
      ...query,
      flags: Flag.QR | Flag.RA | (isCut ? Flag.TC : 0),
      rcode,
      answer,
      additional: [],
      edns: undefined,
    });
  }
}

/** A name as the table has it, down to the root. */
export function absoluteName(name: string): string {
  return name.endsWith(".") ? name : `${name}.cluster.local.`;
}

/** Asks what a case asks, and compares. */
export async function checkRule(server: Server, { name, type, expected }: RuleCase): Promise<void> {
  const asked = absoluteName(name);
  checkReply(await askOverTcp(server, asked, type), asked, expected);
}

/** Waits until a server knows the whole cluster: before that no name of it is known not to exist. */
export function untilSynced(server: Server & { readonly log?: unknown }): Promise<void> {
  const isSynced = async () =>
    (await askOverTcp(server, "no.such.svc.cluster.local.", "A")).rcode !== Rcode.SERVFAIL;
  const log = () => (typeof server.log === "string" ? server.log : "");
  return untilTrue(isSynced, { what: "the whole cluster is known", log, milliseconds: 60_000 });
}

/** Asks over TCP, where nothing is cut off. @throws where there is no answer */
export async function askOverTcp(server: Server, name: string, type: string): Promise<Message> {
  await using client = await TcpClient.connect(server);
  client.send(queryOctets(name, type));
  const reply = await client.receive();
  if (reply === undefined) throw new Error(`no answer to ${name} ${type}`);
  return decodeMessage(reply);
}

/**
 * What a reply says, as {@link WholeAnswer} says it, without TTLs, which count down in caches, and without regard to the spelling of the
 * zone, which follows the question's where a cached name ends in a pointer to it.
 */
export function summaryOf(reply: Message, asked: string): string {
  const texts = (section: readonly ResourceRecord[]) =>
    section
      .map((record) => describeRecord(record, asked, 5).replace(/\.cluster\.local\.(?= |$)/gi, ""))
      .sort();
  return summary(rcodeName(reply.rcode), texts(reply.answer), texts(reply.additional));
}

/** The result of {@link summaryOf} for a reply that is as expected. */
export function summaryWanted(expected: Expectation): string {
  if (expected === "REFUSED") return summary("REFUSED", [], []);
  const { rcode = "NOERROR", answer, additional } = wholeOf(expected);
  return summary(rcode, [...answer].sort(), [...additional].sort());
}

function summary(rcode: string, answer: readonly string[], additional: readonly string[]): string {
  return [rcode, ...answer, ...additional.map((text) => `+ ${text}`)].join("\n");
}

/** Compares a reply with what a rule wants. `asked` is absolute. */
export function checkReply(reply: Message, asked: string, expected: Expectation): void {
  assert.equal(String(reply.questions[0]?.name), asked);
  if (expected === "REFUSED") {
    assert.equal(rcodeName(reply.rcode), "REFUSED");
    return;
  }
  assert.ok((reply.flags & Flag.AA) !== 0, "AA is not set");
  assert.equal(reply.flags & Flag.TC, 0, "TC is set");
  const whole = wholeOf(expected);
  const texts = (section: readonly ResourceRecord[]) =>
    section.map((record) => describeRecord(record, asked)).sort();
  assert.equal(rcodeName(reply.rcode), whole.rcode ?? "NOERROR");
  assert.deepEqual(texts(reply.answer), [...whole.answer].sort());
  assert.deepEqual(texts(reply.additional), [...whole.additional].sort());
  const types = (section: readonly ResourceRecord[]) => section.map(({ type }) => type);
  if (whole.authority !== undefined) assert.deepEqual(texts(reply.authority), [...whole.authority].sort());
  else if (whole.answer.length === 0) assert.deepEqual(types(reply.authority), [RecordType.SOA]);
  // A CNAME stands before what it points to.
  const [aliases, others] = [true, false].map((isAlias) =>
    types(reply.answer).filter((type) => (type === RecordType.CNAME) === isAlias),
  );
  assert.deepEqual(types(reply.answer), [...(aliases ?? []), ...(others ?? [])]);
}

/** `OWNER TTL TYPE DATA` as the table has it. */
function describeRecord(record: ResourceRecord, asked: string, shownTtl = record.ttl): string {
  const ttl = String(shownTtl);
  const [owner = "", , , type = "", ...data] = formatRecord(record).split(/\s+/);
  if (type === "SOA") data[2] = "SERIAL";
  const words = [owner === asked ? "" : owner, ttl === "5" ? "" : ttl, type, ...data];
  return words
    .filter((word) => word !== "")
    .map((word) => word.replace(/\.cluster\.local\.$/, ""))
    .join(" ");
}
