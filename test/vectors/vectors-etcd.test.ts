/**
 * Answers recorded from CoreDNS 1.14.7 with a real etcd, asked of this server with a real etcd. The format of the sets is that of
 * `fixtures/vectors/zones`; where this server differs on purpose, `differences/etcd.json` beside them names the reason.
 */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { decodeMessage, encodeMessage, makeQuery } from "../../src/dns/message.ts";
import { Flag, parseRcode } from "../../src/dns/numbers.ts";
import { parseRecordType } from "../../src/dns/type-names.ts";
import { createServer } from "../../src/index.ts";
import { exchangeUdp, TcpClient } from "../support/dns-client.ts";
import { EtcdServer } from "../support/etcd.ts";
import { namedPorts } from "../support/free-ports.ts";
import { readDifferences, readLines } from "../support/vectors/vector-set.ts";
import { answerText, completeAnswer, nameOf } from "../support/vectors/vector-text.ts";

interface ZoneCase {
  readonly q: {
    readonly name: string;
    readonly type: string;
    readonly transport: "udp" | "tcp";
    readonly edns?: { readonly size: number; readonly do: boolean };
  };
  readonly r: {
    readonly rcode: string;
    readonly flags: readonly string[];
    readonly question: readonly string[];
    readonly answer: readonly string[];
    readonly authority: readonly string[];
    readonly additional: readonly string[];
    readonly edns?: { readonly size: number; readonly version: number; readonly do: boolean };
  };
}

type Values = Readonly<Record<string, unknown>>;

interface EtcdSet {
  readonly id: string;
  readonly corefile: string;
  readonly etcd?: Values;
  readonly cases: readonly ZoneCase[];
  readonly steps?: readonly { readonly etcd_put: Values; readonly cases: readonly ZoneCase[] }[];
}

const differences = readDifferences("zones/differences/etcd.json");

suite("etcd, recorded from CoreDNS", { skip: skipWithout("etcd", "etcdctl") }, () => {
  let etcd: EtcdServer;
  before(async () => {
    etcd = await EtcdServer.start();
  });
  after(() => etcd[Symbol.asyncDispose]());

  for (const set of readLines<EtcdSet>("zones/etcd.jsonl")) {
    test(set.id, async () => {
      await etcd.control("del", "", "--from-key");
      await fill(etcd, set.etcd ?? {});
      const portOf = await namedPorts();
      const corefile = set.corefile
        .replaceAll("{{etcd}}", String(etcd.port))
        .replaceAll(/\{\{(port\d?)\}\}/g, (_all, name: string) => String(portOf(name)));
      await using server = await createServer({ corefile });
      await server.start();
      const found: string[] = [];
      const run = async (cases: readonly ZoneCase[], first: number) => {
        for (const [index, asked] of cases.entries()) {
          const id = `${set.id} ${first + index}`;
          const { actual, expected } = await compare(portOf("port"), asked, differences.has(id));
          if (differences.has(id)) {
            assert.notDeepEqual(actual, expected, `${id} is listed as different, and is not`);
            found.push(id);
          } else assert.deepEqual(actual, expected, id);
        }
      };
      await run(set.cases, 1);
      let count = set.cases.length;
      for (const step of set.steps ?? []) {
        await etcd.put(step.etcd_put);
        await run(step.cases, count + 1);
        count += step.cases.length;
      }
      const listed = [...differences.keys()].filter((id) => id.startsWith(`${set.id} `));
      assert.deepEqual(found, listed);
    });
  }
});

/** Values of the sets are objects, texts, or either of them under a lease. */
async function fill(etcd: EtcdServer, values: Values): Promise<void> {
  const plain: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(values)) {
    if (typeof value === "object" && value !== null && "lease" in value && "value" in value)
      await etcd.putWithLease(key, value.value, Number(value.lease));
    else plain[key] = value;
  }
  if (Object.keys(plain).length > 0) await etcd.put(plain);
}

/** Asks until the answer is as recorded: changes of etcd, and the terms of leases, take a moment to arrive. */
async function compare(port: number, asked: ZoneCase, differs: boolean) {
  const expected = normal(expectation(asked));
  const deadline = performance.now() + 5_000;
  for (;;) {
    const actual = normal(await ask(port, asked));
    const isSame = isDeepStrictEqual(actual, expected);
    if (isSame || differs || performance.now() > deadline) return { actual, expected };
    await pause(10);
  }
}

async function ask(port: number, { q }: ZoneCase) {
  const type = parseRecordType(q.type);
  assert.ok(type !== undefined);
  const query = makeQuery(
    { name: nameOf(q.name), type, class: 1 },
    {
      id: 0x1234,
      flags: Flag.RD,
      ...(q.edns && { edns: { udpSize: q.edns.size, version: 0, dnssecOk: q.edns.do, options: [] } }),
    },
  );
  const server = { address: "127.0.0.1", port };
  const octets = encodeMessage(query);
  const reply = q.transport === "tcp" ? await exchangeTcp(server, octets) : await exchangeUdp(server, octets);
  assert.ok(reply !== undefined, `no answer to ${q.name} ${q.type}`);
  return answerText(decodeMessage(reply));
}

function expectation({ r }: ZoneCase) {
  const records = (texts: readonly string[]) => texts.map((text) => text.replace("{now}", "1"));
  const flags = r.flags.map((flag) => flag.toUpperCase()).join(" ");
  assert.ok(parseRcode(r.rcode) !== undefined);
  return completeAnswer({
    rcode: r.rcode,
    flags,
    question: r.question,
    answer: records(r.answer),
    authority: records(r.authority),
    additional: records(r.additional),
    edns: r.edns === undefined ? null : { ...r.edns, options: [] },
  });
}

/** Parts that are not compared: serials, and the age of a lease in seconds. */
function normal(answer: ReturnType<typeof answerText>) {
  const text = (record: string) =>
    record.replace(/( SOA \S+ \S+) \d+/, "$1 SERIAL").replace(/ (59[5-9]|600) IN /, " 59x IN ");
  return {
    ...answer,
    answer: (answer.answer ?? []).map(text),
    authority: (answer.authority ?? []).map(text),
    additional: (answer.additional ?? []).map(text),
  };
}

async function exchangeTcp(
  server: { readonly address: string; readonly port: number },
  octets: Uint8Array,
): Promise<Uint8Array | undefined> {
  await using client = await TcpClient.connect(server);
  client.send(octets);
  return await client.receive();
}
