/** The outcome of one query in one line. */
import assert from "node:assert/strict";
import { decodeMessage } from "../../src/dns/message.ts";
import { Flag, rcodeName } from "../../src/dns/numbers.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { exchangeUdp, queryOctets, type Server, TcpClient } from "./dns-client.ts";

/** The result of a single query: rcode, and the data of the answers, or TC if some are missing. */
export async function outcome(server: Server, name: string, type = "A", transport = "udp"): Promise<string> {
  const octets = queryOctets(name, type, Math.floor(Math.random() * 0x10000));
  const reply = transport === "udp" ? await exchangeUdp(server, octets) : await exchangeTcp(server, octets);
  if (reply === undefined) return "nothing";
  const message = decodeMessage(reply);
  assert.equal(message.id, (octets[0] ?? 0) * 256 + (octets[1] ?? 0));
  assert.deepEqual(message.questions.map(String), decodeMessage(octets).questions.map(String));
  if (transport === "udp") assert.ok(reply.length <= 512);
  const data = (message.flags & Flag.TC) === 0 ? message.answer.map(formatData) : ["TC"];
  return [rcodeName(message.rcode), ...data].join(" ");
}

async function exchangeTcp(server: Server, octets: Uint8Array): Promise<Uint8Array | undefined> {
  await using client = await TcpClient.connect(server);
  client.send(octets);
  return await client.receive();
}
