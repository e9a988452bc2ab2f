import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import {
  DEFAULT_TSIG_ALGORITHM,
  decodeMessage,
  encodeMessage,
  Name,
  type ResourceRecord,
  SOA,
  TsigKeyRing,
} from "../../dns/index.ts";
import { ZoneNotLoadedError } from "../../plugin/contract/transfer.ts";
import { type PlacedPlugin, Query, SetupError, type TransferSource } from "../../plugin/index.ts";
import { TSIG_KEYS } from "../../plugin/services/tsig-keys.ts";
import {
  ConfigRefused,
  makeTestQuery,
  PluginTest,
  records,
  recordText,
  until,
} from "../../plugin/testing.ts";
import transfer from "./index.ts";
import { transferMessages } from "./messages.ts";

const apex = Name.parse("example.org.");

function soa(serial: number) {
  return SOA.create(apex, 60, {
    primary: apex,
    mailbox: apex,
    serial,
    refresh: 1,
    retry: 1,
    expire: 1,
    minimum: 1,
  });
}

class Source implements TransferSource {
  readonly transferZones = [apex];
  readonly listeners = new Set<(apex: Name) => void>();
  size = 1;
  loaded = true;

  transfer(name: Name) {
    if (!name.equals(apex)) return undefined;
    if (!this.loaded) throw new ZoneNotLoadedError(apex);
    const all = Array.from({ length: this.size }, (_, index) => `h${index}.example.org. 60 IN A 192.0.2.1`);
    return {
      soa: soa(8),
      records: () => records("example.org. 60 IN NS a.", ...all),
      changesSince: (serial: number): ResourceRecord[] | undefined =>
        serial === 7
          ? [
              soa(7),
              ...records("a.example.org. 60 IN A 192.0.2.1"),
              soa(8),
              ...records("b.example.org. 60 IN A 192.0.2.1"),
            ]
          : undefined,
    };
  }

  onZoneChange(listener: (apex: Name) => void): () => void {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }
}

function serve(options: string, source = new Source()) {
  const neighbours: PlacedPlugin[] = [{ name: "file", instance: { transferSource: source } }];
  return {
    source,
    running: PluginTest.of(transfer, `transfer example.org {\n${options}\n}`, { neighbours }),
  };
}

/** Owner and type of each record, one list per message; or the rcode without a transfer. */
async function ask(
  running: ReturnType<typeof serve>["running"],
  type: string,
  {
    serial,
    client = "192.0.2.1",
    transport = "tcp",
    name = "example.org.",
  }: { serial?: number; client?: string; transport?: "tcp" | "udp"; name?: string } = {},
): Promise<string[][] | number> {
  const query = queryWith(type, serial, client, transport, name);
  const outcome = await running.chain((asked) => asked.fail(9))(query);
  if (outcome.kind === "failed") return outcome.rcode;
  if (outcome.kind === "reply") return outcome.rcode === 0 ? [outcome.answer.map(short)] : outcome.rcode;
  if (outcome.kind === "dropped") return -1;
  const messages: string[][] = [];
  for (let part = await outcome.parts.next(); part.done !== true; part = await outcome.parts.next()) {
    assert.equal(part.value.authoritative, true);
    assert.ok(part.value.size <= 17_000);
    messages.push(part.value.answer.map(short));
  }
  return messages;
}

function queryWith(
  type: string,
  serial: number | undefined,
  client: string,
  transport: "tcp" | "udp",
  name: string,
) {
  const query = makeTestQuery({ name, type, client, transport });
  if (serial === undefined) return query;
  const bytes = encodeMessage({ ...query.decode(), authority: [soa(serial)] });
  const withSerial = Query.read(bytes, bytes.length, query);
  assert.ok(withSerial !== undefined);
  return withSerial;
}

function short(record: ResourceRecord): string {
  const [name, , , type] = recordText(record).split(" ");
  return SOA.is(record) ? `SOA ${record.data.serial}` : `${name} ${type}`;
}

test("AXFR is the zone between two SOA records, in as many messages as necessary", async () => {
  const { running, source } = serve("to *");
  assert.deepEqual(await ask(running, "AXFR"), [["SOA 8", "example.org. NS", "h0.example.org. A", "SOA 8"]]);
  assert.match(
    running.log.lines.join("\n"),
    /Outgoing transfer of 4 records of zone "example\.org\." to 192\.0\.2\.1 for 8 SOA serial/,
  );
  source.size = 3_000;
  const messages = await ask(running, "AXFR");
  assert.ok(Array.isArray(messages) && messages.length > 3);
  assert.equal(messages.flat().length, 3_003);
  assert.equal(messages.flat().at(-1), "SOA 8");
});

test("a record of almost a message's size gets a message of its own, and a larger one is reported", () => {
  const text = (octets: number): string =>
    Array.from({ length: octets / 250 }, () => `"${"x".repeat(249)}"`).join(" ");
  const small = records(
    ...Array.from({ length: 300 }, (_, index) => `a${index}.example.org. 60 IN A 192.0.2.1`),
  );
  const query = queryWith("AXFR", undefined, "192.0.2.1", "tcp", "example.org.");
  const messagesOf = (...large: readonly string[]): number[] => {
    const all = [soa(8), ...small, ...records(...large), ...small, soa(8)];
    const replies = [...transferMessages(query, all, (count) => assert.equal(count, all.length))];
    assert.ok(replies.every(({ size }) => size <= 65_535 - 512));
    assert.deepEqual(
      replies.flatMap(({ answer }) => answer.map(short)),
      all.map(short),
    );
    return replies.map(({ answer }) => answer.length);
  };
  assert.deepEqual(messagesOf(`t.example.org. 60 IN TXT ${text(40_000)}`), [302, 301]);
  assert.deepEqual(messagesOf(`t.example.org. 60 IN TXT ${text(62_000)}`), [301, 1, 301]);
  assert.deepEqual(
    messagesOf(`t.example.org. 60 IN TXT ${text(62_000)}`, `t.example.org. 60 IN TXT ${text(63_000)}`),
    [301, 1, 1, 301],
  );
  assert.throws(
    () => messagesOf(`t.example.org. 60 IN TXT ${text(65_500)}`),
    /the TXT record of t\.example\.org\. fits into no message/,
  );
});

for (const [serial, expected] of [
  [8, [["SOA 8"]]],
  [9, [["SOA 8"]]],
  [7, [["SOA 8", "SOA 7", "a.example.org. A", "SOA 8", "b.example.org. A", "SOA 8"]]],
  [6, [["SOA 8", "example.org. NS", "h0.example.org. A", "SOA 8"]]],
  [0, [["SOA 8", "example.org. NS", "h0.example.org. A", "SOA 8"]]],
] as const) {
  test(`IXFR from serial ${serial}`, async () => {
    assert.deepEqual(await ask(serve("to *").running, "IXFR", { serial }), expected);
  });
}

test("over UDP, IXFR is the SOA record and AXFR is refused", async () => {
  const { running } = serve("to *");
  assert.deepEqual(await ask(running, "IXFR", { serial: 6, transport: "udp" }), [["SOA 8"]]);
  assert.equal(await ask(running, "AXFR", { transport: "udp" }), 5);
});

test("a client without permission is refused, a name that is not a zone passes, and a malformed query or unloaded zone fails", async () => {
  const { running, source } = serve("to 192.0.2.7 2001:db8::7");
  assert.equal(await ask(running, "AXFR"), 5);
  assert.equal(await ask(running, "IXFR", { serial: 8, transport: "udp" }), 5);
  assert.ok(Array.isArray(await ask(running, "AXFR", { client: "2001:db8:0::7" })));
  assert.equal(await ask(running, "AXFR", { client: "192.0.2.7", name: "sub.example.org." }), 9);
  assert.equal(await ask(running, "AXFR", { client: "192.0.2.7", name: "example.net." }), 9);
  assert.equal(await ask(running, "IXFR", { client: "192.0.2.7" }), 2);
  source.loaded = false;
  assert.equal(await ask(running, "AXFR", { client: "192.0.2.7" }), 2);
  const { body } = await running.metrics.expose();
  assert.match(body, /^portolan_transfer_out_total\{zone="example\.org\.",result="refused"\} 2$/m);
});

function ring(): PlacedPlugin {
  const keys = new TsigKeyRing();
  const name = Name.parse("transfer.example.");
  keys.add({ name, secret: new Uint8Array(32), algorithm: DEFAULT_TSIG_ALGORITHM });
  return { name: "tsig", instance: { services: [TSIG_KEYS.offer(keys)] } };
}

function serveWithKey(to: string, key = "transfer.example") {
  const neighbours: PlacedPlugin[] = [ring(), { name: "file", instance: { transferSource: new Source() } }];
  return PluginTest.of(transfer, `transfer example.org {\n to ${to}\n key ${key}\n}`, { neighbours });
}

for (const [signer, kind] of [
  [undefined, "reply"],
  ["other.example.", "reply"],
  ["Transfer.Example.", "stream"],
] as const) {
  test(`with a key, a client that signs with ${signer ?? "no key"} gets a ${kind === "stream" ? "zone" : "refusal"}`, async () => {
    const running = serveWithKey("*");
    const query = makeTestQuery({ name: "example.org.", type: "AXFR", transport: "tcp" });
    query.root.signer = signer === undefined ? undefined : Name.parse(signer);
    const outcome = await running.chain((asked) => asked.fail(9))(query);
    if (kind === "reply") assert.ok(outcome.kind === "reply" && outcome.rcode === 5);
    else assert.ok(!["reply", "failed", "dropped"].includes(outcome.kind));
  });
}

test("with a key, NOTIFY is signed, and an unsigned answer does not count", async () => {
  const secondary = createSocket("udp4");
  secondary.bind(0, "127.0.0.1");
  await once(secondary, "listening");
  const signed: boolean[] = [];
  secondary.on("message", (octets, from) => {
    const message = decodeMessage(octets);
    signed.push(message.additional.some(({ type }) => type === 250));
    const flags = message.flags | 0x8000;
    secondary.send(encodeMessage({ ...message, flags, additional: [] }), from.port, from.address);
  });
  const running = serveWithKey(`127.0.0.1:${secondary.address().port}`);
  await running.start();
  await running.clock.settle(500);
  await until(() => running.log.lines.some((line) => line.includes("reply is not signed")));
  assert.deepEqual(signed, [true, true, true]);
  await running.stop();
  secondary.close();
});

test("a key that the server block does not have prevents the start", async () => {
  await assert.rejects(
    serveWithKey("*", "other.example").start(),
    (error) =>
      error instanceof SetupError &&
      error.message.startsWith("the key other.example. of 'key' for zone example.org. is unknown"),
  );
});

test("other queries pass", async () => {
  assert.equal(await ask(serve("to *").running, "SOA"), 9);
});

test("NOTIFY is sent at once, then once for the changes soon after, and a refusal is retried three times and logged", async () => {
  const secondary = createSocket("udp4");
  secondary.bind(0, "127.0.0.1");
  await once(secondary, "listening");
  const seen: string[] = [];
  let rcode = 0;
  secondary.on("message", (octets, from) => {
    const message = decodeMessage(octets);
    seen.push(`${message.opcode} ${message.questions[0]?.name} ${message.questions[0]?.type}`);
    secondary.send(
      encodeMessage({ ...message, flags: message.flags | 0x8000, rcode }),
      from.port,
      from.address,
    );
  });
  const { running, source } = serve(`to 127.0.0.1:${secondary.address().port}`);
  const change = (): void => {
    for (const listener of source.listeners) listener(apex);
  };
  await running.start();
  await running.clock.settle(500);
  await until(() => seen.length === 1);
  assert.equal(seen[0], "4 example.org. 6");
  rcode = 5;
  for (let count = 0; count < 20; count++) change();
  await running.clock.settle(500);
  await until(() => running.log.lines.some((line) => line.includes("was not accepted")));
  assert.equal(seen.length, 4);
  assert.match(
    running.log.lines.join("\n"),
    /plugin\/file: notify for zone "example\.org\." was not accepted by "127\.0\.0\.1:\d+": rcode was "REFUSED"/,
  );
  rcode = 0;
  await running.clock.settle(500);
  // The clock does not advance, so this is sent at once.
  change();
  await until(() => seen.length === 5);
  for (let count = 0; count < 20; count++) change();
  await running.clock.settle(500);
  await until(() => seen.length === 6);
  await running.stop();
  assert.equal(source.listeners.size, 0);
  secondary.close();
});

for (const [text, message] of [
  ["transfer", /'to' is required/],
  ["transfer {\n to\n}", /unexpected line ending after 'to'/],
  ["transfer {\n to xyz\n}", /must specify an IP address: `xyz'/],
  ["transfer {\n to *\n foo\n}", /unknown property 'foo'/],
  ["transfer {\n to *\n key\n}", /unexpected line ending after 'key'/],
  ["transfer {\n to *\n source x\n}", /invalid source address "x"/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(transfer, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
