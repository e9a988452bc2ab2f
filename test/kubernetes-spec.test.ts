/**
 * Every rule of Kubernetes DNS, put to the running program over UDP and over TCP. The cluster is a folder of manifests, the world
 * outside of it an unbound.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Flag, RecordType, rcodeName } from "../src/dns/index.ts";
import { decodeMessage, type Message } from "../src/dns/message.ts";
import type { ResourceRecord } from "../src/dns/record-kind.ts";
import { formatRecord } from "../src/dns/resource-record.ts";
import { type Expectation, OUTSIDE, RULE_GROUPS, type RuleGroup } from "./fixtures/kubernetes/rules.ts";
import { ask, queryOctets, type Server, TcpClient } from "./support/dns-client.ts";
import { Peer, skipWithoutPeers } from "./support/peers.ts";
import { Portolan } from "./support/portolan.ts";

const cluster = fileURLToPath(new URL("fixtures/kubernetes", import.meta.url));

/** Groups that need the same configuration share a server block, each block has an address of its own. */
const configurations = new Map<string, { readonly address: string; readonly group: RuleGroup }>();
for (const group of RULE_GROUPS) {
  const key = configurationKey(group);
  if (!configurations.has(key))
    configurations.set(key, { address: `127.0.1.${configurations.size + 1}`, group });
}

function configurationKey({ options, zones = "" }: RuleGroup): string {
  return [zones, ...options].join("\n");
}

function serverBlock(address: string, { options, zones }: RuleGroup, port: number, upstream: number): string {
  return `.:${port} {
    bind ${address}
    errors
    kubernetes ${zones ?? "cluster.local in-addr.arpa ip6.arpa"} {
        manifests ${cluster}
        ${options.join("\n        ")}
    }
    forward . 127.0.0.1:${upstream}
}
`;
}

describe("the Kubernetes DNS specification", { skip: skipWithoutPeers("unbound") }, () => {
  let outside: Peer;
  let server: Portolan;

  before(async () => {
    outside = await Peer.unbound(OUTSIDE);
    server = await Portolan.start((port) => {
      const blocks = [...configurations.values()].map(({ address, group }) =>
        serverBlock(address, group, port("dns"), outside.port),
      );
      // The harness looks for an answer at 127.0.0.1.
      return [`.:${port("dns")} {\n    bind 127.0.0.1\n    whoami\n}\n`, ...blocks].join("\n");
    });
  });

  after(async () => {
    await server?.[Symbol.asyncDispose]();
    await outside?.[Symbol.asyncDispose]();
  });

  for (const group of RULE_GROUPS) {
    const address = configurations.get(configurationKey(group))?.address ?? "";
    for (const { rule, name, type, expected } of group.cases) {
      test(`rule ${rule} (${group.title}): ${name} ${type}`, async () => {
        const asked = name.endsWith(".") ? name : `${name}.cluster.local.`;
        const at: Server = { address, port: server.port };
        check(await ask(at, asked, type), asked, expected);
        check(await askOverTcp(at, asked, type), asked, expected);
      });
    }
  }
});

function check(reply: Message, asked: string, expected: Expectation): void {
  assert.equal(String(reply.questions[0]?.name), asked);
  if (expected === "REFUSED") {
    assert.equal(rcodeName(reply.rcode), "REFUSED");
    return;
  }
  assert.ok((reply.flags & Flag.AA) !== 0, "AA is not set");
  assert.equal(reply.flags & Flag.TC, 0);
  if (expected === "NX" || expected === "ND") {
    assert.equal(rcodeName(reply.rcode), expected === "NX" ? "NXDOMAIN" : "NOERROR");
    assert.deepEqual(reply.answer.map(formatRecord), []);
    assert.deepEqual(
      reply.authority.map((record) => record.type),
      [RecordType.SOA],
    );
    return;
  }
  assert.equal(rcodeName(reply.rcode), "NOERROR");
  const whole = "additional" in expected ? expected : { answer: expected, additional: [] };
  assert.deepEqual(
    reply.answer.map((record) => describeRecord(record, asked)).sort(),
    [...whole.answer].sort(),
  );
  assert.deepEqual(
    reply.additional.map((record) => describeRecord(record, asked)).sort(),
    [...whole.additional].sort(),
  );
}

/** `OWNER TTL TYPE DATA` as the table has it: without what goes without saying. */
function describeRecord(record: ResourceRecord, asked: string): string {
  const [owner = "", ttl = "", , type = "", ...data] = formatRecord(record).split(/[\t ]/);
  if (type === "SOA") data[2] = "SERIAL";
  return [owner === asked ? "" : owner, ttl === "5" ? "" : ttl, type, ...data]
    .filter((word) => word !== "")
    .map((word) => word.replace(/\.cluster\.local\.$/, ""))
    .join(" ");
}

async function askOverTcp(server: Server, name: string, type: string): Promise<Message> {
  await using client = await TcpClient.connect(server);
  client.send(queryOctets(name, type));
  const reply = await client.receive();
  assert.ok(reply !== undefined, "no answer over TCP");
  return decodeMessage(reply);
}
