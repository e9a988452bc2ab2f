/** The table of Kubernetes' DNS rules, put to a server over TCP. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { decodeMessage, encodeMessage, type Message } from "../../src/dns/message.ts";
import { Flag, Rcode, rcodeName } from "../../src/dns/numbers.ts";
import type { ResourceRecord } from "../../src/dns/record-kind.ts";
import { formatRecord, parseRecord } from "../../src/dns/resource-record.ts";
import { type Expectation, OUTSIDE, type RuleCase, type RuleGroup } from "../fixtures/kubernetes/rules.ts";
import { queryOctets, type Server, TcpClient } from "./dns-client.ts";

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

/** A resolver that knows the names outside of the cluster, and that nothing else exists. */
export class OutsideWorld implements AsyncDisposable {
  readonly #socket = createSocket("udp4");
  readonly #records = OUTSIDE.map((line) => parseRecord(line));

  private constructor() {
    this.#socket.on("message", (octets, { port, address }) => {
      this.#socket.send(this.#answer(decodeMessage(octets)), port, address);
    });
  }

  static async start(): Promise<OutsideWorld> {
    const world = new OutsideWorld();
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
    const answer = named.filter(({ type }) => type === question?.type);
    const rcode = named.length === 0 ? Rcode.NXDOMAIN : Rcode.NOERROR;
    return encodeMessage({
      ...query,
      flags: Flag.QR | Flag.RA,
      rcode,
      answer,
      additional: [],
      edns: undefined,
    });
  }
}

/** Asks what a case asks, and compares. */
export async function checkRule(server: Server, { name, type, expected }: RuleCase): Promise<void> {
  const asked = name.endsWith(".") ? name : `${name}.cluster.local.`;
  checkReply(await askOverTcp(server, asked, type), asked, expected);
}

/** Waits until a server knows the whole cluster: before that no name of it is known not to exist. */
export async function untilSynced(server: Server): Promise<void> {
  for (;;) {
    const { rcode } = await askOverTcp(server, "no.such.svc.cluster.local.", "A");
    if (rcode !== Rcode.SERVFAIL) return;
  }
}

/** Asks over TCP, where nothing is cut off. @throws where there is no answer */
export async function askOverTcp(server: Server, name: string, type: string): Promise<Message> {
  await using client = await TcpClient.connect(server);
  client.send(queryOctets(name, type));
  const reply = await client.receive();
  if (reply === undefined) throw new Error(`no answer to ${name} ${type}`);
  return decodeMessage(reply);
}

function checkReply(reply: Message, asked: string, expected: Expectation): void {
  if (expected === "REFUSED") {
    assert.equal(rcodeName(reply.rcode), "REFUSED");
    return;
  }
  assert.ok((reply.flags & Flag.AA) !== 0, "AA is not set");
  const texts = (section: readonly ResourceRecord[]) =>
    section.map((record) => describeRecord(record, asked)).sort();
  if (expected === "NX" || expected === "ND") {
    assert.equal(rcodeName(reply.rcode), expected === "NX" ? "NXDOMAIN" : "NOERROR");
    assert.deepEqual(texts(reply.answer), []);
    assert.equal(texts(reply.authority).length, 1);
    assert.match(texts(reply.authority)[0] ?? "", /\bSOA\b/);
    return;
  }
  const { answer, additional } = "additional" in expected ? expected : { answer: expected, additional: [] };
  assert.equal(rcodeName(reply.rcode), "NOERROR");
  assert.deepEqual(texts(reply.answer), [...answer].sort());
  assert.deepEqual(texts(reply.additional), [...additional].sort());
}

/** `OWNER TTL TYPE DATA` as the table has it. */
function describeRecord(record: ResourceRecord, asked: string): string {
  const [owner = "", ttl = "", , type = "", ...data] = formatRecord(record).split(/\s+/);
  if (type === "SOA") data[2] = "SERIAL";
  const words = [owner === asked ? "" : owner, ttl === "5" ? "" : ttl, type, ...data];
  return words
    .filter((word) => word !== "")
    .map((word) => word.replace(/\.cluster\.local\.$/, ""))
    .join(" ");
}
