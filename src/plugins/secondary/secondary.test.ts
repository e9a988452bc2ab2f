import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  DEFAULT_TSIG_ALGORITHM,
  Name,
  Rcode,
  type ResourceRecord,
  TsigError,
  TsigKeyRing,
} from "../../dns/index.ts";
import { type PlacedPlugin, SetupError } from "../../plugin/index.ts";
import { TSIG_KEYS } from "../../plugin/services/tsig-keys.ts";
import { ConfigRefused, FakeClock, PluginTest, records, until } from "../../plugin/testing.ts";
import { upstreamAddress } from "../../upstream/config/address.ts";
import type { Zone } from "../../zones/data/zone.ts";
import { type TransferInOptions, transferIn } from "../../zones/transfer/transfer-in.ts";
import { addressOf, apex, loaded, notify, ScriptedPrimary, serve, soa } from "./fixtures/primary.ts";
import secondary from "./index.ts";

test("a zone is transferred, refreshed after its time and after NOTIFY, and only changes are transferred", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
  primary.messages = (_type, known) =>
    known === 1
      ? [
          [soa(2), soa(1)],
          records("www.example.org. 60 IN A 192.0.2.1"),
          [soa(2), ...records("www.example.org. 60 IN A 192.0.2.2"), soa(2)],
        ]
      : [[soa(2)]];
  await running.clock.settle(102_500);
  await loaded(running, 2);
  assert.deepEqual(await addressOf(running), ["192.0.2.2"]);
  const accepted = await notify(running);
  assert.ok(accepted.kind === "reply" && accepted.rcode === Rcode.NOERROR && accepted.authoritative);
  await until(() => primary.asked.length === 4);
  assert.deepEqual(primary.asked, ["AXFR", "SOA", "IXFR 1", "IXFR 2"]);
  const refused = await notify(running, "192.0.2.9");
  assert.ok(refused.kind === "failed" && refused.rcode === Rcode.REFUSED);
  await running.stop();
  const { body } = await running.metrics.expose();
  assert.match(body, /portolan_transfer_in_total\{zone="example\.org\.",result="ixfr"\} 1/);
});

function ring(name: string): PlacedPlugin {
  const keys = new TsigKeyRing();
  keys.add({ name: Name.parse(name), secret: new Uint8Array(32), algorithm: DEFAULT_TSIG_ALGORITHM });
  return { name: "tsig", instance: { services: [TSIG_KEYS.offer(keys)] } };
}

test("with a key, an unsigned transfer or NOTIFY is rejected", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = PluginTest.of(
    secondary,
    `secondary example.org {\n transfer from 127.0.0.1:${primary.port}\n key Transfer.Example\n}`,
    { neighbours: [ring("transfer.example.")] },
  );
  const starting = running.start();
  await until(() => running.log.lines.some((line) => line.includes("reply is not signed")));
  assert.equal(await addressOf(running), 2);
  const before = primary.asked.length;
  for (const signer of [undefined, Name.parse("other.example.")]) {
    const query = running.query({ name: "example.org.", type: "SOA", opcode: 4, client: "127.0.0.1" });
    query.root.signer = signer;
    const outcome = await running.chain((asked) => asked.fail())(query);
    assert.ok(outcome.kind === "failed" && outcome.rcode === Rcode.REFUSED);
  }
  assert.equal(primary.asked.length, before);
  const query = running.query({ name: "example.org.", type: "SOA", opcode: 4, client: "127.0.0.1" });
  query.root.signer = Name.parse("transfer.example.");
  const outcome = await running.chain((asked) => asked.fail())(query);
  assert.ok(outcome.kind === "reply" && outcome.rcode === Rcode.NOERROR);
  await until(() => primary.asked.length > before);
  await running.stop();
  await starting;
});

test("a key that the server block does not have prevents the start", async () => {
  const running = PluginTest.of(
    secondary,
    "secondary example.org {\n transfer from 127.0.0.1:9\n key transfer.example\n}",
    { neighbours: [ring("other.example.")] },
  );
  const unknown = (error: unknown) =>
    error instanceof SetupError &&
    error.message.startsWith("the key transfer.example. of 'key' for zone example.org. is unknown");
  await assert.rejects(running.start(), unknown);
  await assert.rejects(async () => running.instances[0]?.examine?.(), unknown);
});

test("until the first transfer queries fail, and primaries are retried", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.messages = () => [Rcode.REFUSED];
  const running = serve(primary);
  const starting = running.start();
  await until(() => running.log.lines.some((line) => line.includes("retrying in 250ms")));
  assert.equal(await addressOf(running), 2);
  assert.match(
    running.log.lines.join("\n"),
    /Failed to transfer `example\.org\.' from "127\.0\.0\.1:\d+": bad xfr rcode: 5/,
  );
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  await running.clock.settle(250);
  await loaded(running);
  await starting;
  assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
  await running.stop();
});

const texts = Array.from(
  { length: 400 },
  (_, index) => `a.example.org. 60 IN TXT "${index}${"x".repeat(200)}"`,
);

/** Messages with a thousand addresses each. */
function hosts(count: number, label = "host"): ResourceRecord[][] {
  const lines = Array.from(
    { length: count },
    (_, index) => `${label}-${index}.example.org. 60 IN A 192.0.2.1`,
  );
  return Array.from({ length: Math.ceil(count / 1_000) }, (_, part) =>
    records(...lines.slice(part * 1_000, part * 1_000 + 1_000)),
  );
}

for (const [title, messages, reason] of [
  [
    "records of another zone in front",
    [[...records("example.net. 60 IN A 192.0.2.1")]],
    "the first record is not the SOA record",
  ],
  [
    "another serial at the end",
    [[soa(9), ...records("a.example.org. 60 IN A 192.0.2.1"), soa(8)]],
    "begins with serial 9 and ends with 8",
  ],
  ["an end before the last SOA record", [[soa(9), ...records("a.example.org. 60 IN A 192.0.2.1")]], "EOF"],
  ["an empty message", [[]], "a message without records"],
  [
    "more behind the end",
    [[soa(9), soa(9), ...records("a.example.org. 60 IN A 192.0.2.1")]],
    "records after the last SOA record",
  ],
  ["another class", [[soa(9), ...records("a.example.org. 60 CH TXT x"), soa(9)]], "another class"],
  [
    "no NS records",
    [[soa(9), ...records("a.example.org. 60 IN A 192.0.2.1", "a.example.org. 60 IN NS a."), soa(9)]],
    "the zone has no NS records at its apex",
  ],
  [
    "another SOA record at the end",
    [[soa(9), ...records("example.org. 60 IN NS a."), soa(9, { expire: 7 })]],
    "begins with another SOA record of serial 9 than it ends with",
  ],
  [
    "an RRset that fits into no message",
    [
      [soa(9), ...records("example.org. 60 IN NS a.")],
      ...[0, 1].map((part) => records(...texts.slice(part * 200, part * 200 + 200))),
      [soa(9)],
    ],
    "more TXT records than fit into a message",
  ],
] as const) {
  // A large zone is compared with the new records, a small one replaced.
  for (const size of [0, 5_200]) {
    test(`a primary that sends ${title} changes nothing in a zone of ${size + 3} records`, async () => {
      await using primary = await ScriptedPrimary.start();
      primary.messages = () => [
        [soa(1), ...records("example.org. 60 IN NS a.", "www.example.org. 60 IN A 192.0.2.1")],
        ...hosts(size),
        [soa(1)],
      ];
      const running = serve(primary);
      await running.start();
      await loaded(running);
      primary.messages = (type) => (type === 251 ? [Rcode.NOTIMP] : messages);
      await notify(running);
      await until(() => running.log.lines.some((line) => line.includes("Failed to transfer")));
      assert.ok(
        running.log.lines.some((line) => line.includes(reason)),
        running.log.lines.join("\n"),
      );
      assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
      await running.stop();
    });
  }
}

test("changes that leave no NS records cause a transfer of the whole zone", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(5), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  primary.messages = (type) =>
    type === 251
      ? [[soa(6), soa(5), ...records("example.org. 60 IN NS A."), soa(6), soa(6)]]
      : [[soa(6), ...records("www.example.org. 60 IN A 192.0.2.6"), soa(6)]];
  await notify(running);
  await until(() => running.log.lines.some((line) => line.includes("no NS records at its apex")));
  assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
  assert.deepEqual(primary.asked.slice(-2), ["IXFR 5", "AXFR"]);
  await running.stop();
});

test("a transferred zone similar to a large one becomes a difference, and another one replaces it", async () => {
  await using primary = await ScriptedPrimary.start();
  const options: TransferInOptions = {
    apex,
    remote: upstreamAddress("127.0.0.1", primary.port) ?? assert.fail(),
    current: undefined,
    compares: true,
    clock: new FakeClock(),
    id: 1,
    limit: 10_000_000,
    pause: () => Promise.resolve(),
  };
  const send = (serial: number, lists: readonly (readonly ResourceRecord[])[]): void => {
    primary.messages = (type) =>
      type === 251
        ? [Rcode.NOTIMP]
        : [[soa(serial), ...records("example.org. 60 IN NS a.")], ...lists, [soa(serial)]];
  };
  send(1, hosts(6_000));
  const first = await transferIn(options);
  const current = "zone" in first ? first.zone : assert.fail(first.way);
  assert.equal(current.recordCount, 6_002);
  send(2, [
    ...hosts(5_990),
    records("host-1.example.org. 60 IN A 192.0.2.7", "example.net. 60 IN A 192.0.2.8"),
  ]);
  const second = await transferIn({ ...options, current });
  const change = "change" in second ? second.change : assert.fail(second.way);
  assert.deepEqual([change.from, change.removed.count, change.added.count], [1, 10, 1]);
  // Nearly all records are new, or nearly all were removed.
  for (const lists of [hosts(6_000, "other"), hosts(2_000)]) {
    send(3, lists);
    const third = await transferIn({ ...options, current });
    const zone = "zone" in third ? third.zone : assert.fail(third.way);
    assert.deepEqual([zone.serial, zone.recordCount], [3, 2 + lists.length * 1_000]);
  }
  assert.equal(current.recordCount, 6_002);
  // An endless transfer ends at the bound for the zone.
  send(4, Array.from({ length: 60 }, (_, part) => hosts(1_000, `part-${part}`)).flat());
  await assert.rejects(transferIn({ ...options, current, limit: 1_000_000 }), /larger than 1000000 octets/);
  send(2, hosts(5_999));
  const stale = await transferIn({ ...options, current });
  assert.equal(stale.way, "axfr");
  send(1, hosts(5_999));
  assert.deepEqual(await transferIn({ ...options, current }), { way: "same", serial: 1 });
});

test("changes that do not apply cause a transfer of the whole zone, and an older zone is rejected", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(5), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  primary.messages = (type) =>
    type === 251
      ? [[soa(6), soa(5), ...records("nope.example.org. 60 IN A 192.0.2.9"), soa(6), soa(6)]]
      : [[soa(6), ...records("example.org. 60 IN NS a.", "www.example.org. 60 IN A 192.0.2.6"), soa(6)]];
  await notify(running);
  await loaded(running, 2);
  assert.deepEqual(await addressOf(running), ["192.0.2.6"]);
  primary.messages = (type) =>
    type === 251
      ? [Rcode.NOTIMP]
      : [[soa(3), ...records("example.org. 60 IN NS a.", "www.example.org. 60 IN A 192.0.2.3"), soa(3)]];
  const before = primary.asked.length;
  await notify(running);
  await until(() => primary.asked.length === before + 2);
  await running.clock.settle(0);
  assert.deepEqual(await addressOf(running), ["192.0.2.6"]);
  await running.stop();
});

test("steps to an older serial are rejected, whatever the last one", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(5), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  primary.messages = (type) =>
    type === 251
      ? [[soa(7), soa(5), soa(3), ...records("www.example.org. 60 IN A 192.0.2.3"), soa(3), soa(7), soa(7)]]
      : [[soa(7), ...records("example.org. 60 IN NS a.", "www.example.org. 60 IN A 192.0.2.7"), soa(7)]];
  await notify(running);
  await loaded(running, 2);
  assert.deepEqual(await addressOf(running), ["192.0.2.7"]);
  await running.stop();
});

test("each exchange has a guard of its own, and a transfer whose last message is not authenticated is rejected", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  let isSettled = true;
  let guards = 0;
  const options: TransferInOptions = {
    apex,
    remote: upstreamAddress("127.0.0.1", primary.port) ?? assert.fail(),
    current: undefined,
    clock: new FakeClock(),
    id: 1,
    limit: 1_000_000,
    guard() {
      guards++;
      return { sign: (query) => query, verify: (message) => message, isSettled };
    },
    pause: () => Promise.resolve(),
  };
  const whole = async (current?: Zone) => {
    const result = await transferIn({ ...options, current });
    return "zone" in result ? result.zone : assert.fail(result.way);
  };
  const current = await whole();
  assert.deepEqual([current.serial, guards], [1, 1]);
  const first = soa(2);
  primary.messages = (type) =>
    type === 251 ? [Rcode.NOTIMP] : [[first, ...records("example.org. 60 IN NS a."), first]];
  const next = await whole(current);
  assert.deepEqual([next.serial, guards], [2, 3]);
  isSettled = false;
  await assert.rejects(transferIn(options), TsigError);
  // After an untrusted transfer there is no retry.
  primary.messages = () => [[first]];
  await assert.rejects(transferIn({ ...options, current: next }), TsigError);
  assert.equal(guards, 5);
});

test("a zone larger than max_size is rejected", async () => {
  await using primary = await ScriptedPrimary.start();
  const many = Array.from(
    { length: 12_000 },
    (_, index) => `name-with-a-long-label-${index}.example.org. 60 IN A 192.0.2.1`,
  );
  primary.messages = () => [
    [soa(1)],
    ...Array.from({ length: 12 }, (_, part) => records(...many.slice(part * 1_000, part * 1_000 + 1_000))),
    [soa(1)],
  ];
  const running = serve(primary, " max_size 1");
  const starting = running.start();
  await until(() =>
    running.log.lines.some((line) => line.includes("the zone is larger than 1048576 octets")),
  );
  await running.stop();
  await starting;
});

test("without a primary the zone expires, and is served again when one is back", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1, { refresh: 600, retry: 600, expire: 500 }), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary);
  await running.start();
  await loaded(running);
  await running.clock.settle(499_000);
  assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
  await running.clock.settle(1_000);
  assert.equal(await addressOf(running), 2);
  assert.match(running.log.lines.join("\n"), /Zone example\.org\. is expired/);
  await notify(running);
  await until(() => primary.asked.length === 2);
  primary.messages = () => [[soa(1)]];
  await notify(running);
  await until(() => primary.asked.length >= 3);
  for (let turn = 0; turn < 50 && typeof (await addressOf(running)) === "number"; turn++)
    await running.clock.settle(0);
  assert.deepEqual(await addressOf(running), ["192.0.2.1"]);
  await running.stop();
});

test("a copy that could not be written is written after the next query to a primary", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-secondary-"));
  try {
    await using primary = await ScriptedPrimary.start();
    primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
    // A folder in place of the new file blocks the write even for root.
    mkdirSync(join(folder, "example.org.zone.new"));
    const running = serve(primary, ` directory ${folder}`);
    await running.start();
    await loaded(running);
    await until(() => running.log.lines.some((line) => line.includes("cannot be kept")));
    rmSync(join(folder, "example.org.zone.new"), { recursive: true, force: true });
    primary.messages = () => [[soa(1)]];
    await notify(running);
    await until(() => readdirSync(folder).includes("example.org.zone"));
    await running.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a stored copy is served after a restart without a primary, until it expires", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-secondary-"));
  try {
    const primary = await ScriptedPrimary.start();
    primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1", "*.w.example.org. 60 IN TXT x");
    const first = serve(primary, ` directory ${folder}`);
    await first.start();
    await loaded(first);
    await until(() => readdirSync(folder).includes("example.org.zone"));
    await first.stop();
    await primary[Symbol.asyncDispose]();
    const second = serve(primary, ` directory ${folder}`);
    await second.start();
    assert.deepEqual(await addressOf(second), ["192.0.2.1"]);
    await second.clock.settle(1_000_000);
    assert.equal(await addressOf(second), 2);
    await second.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

for (const [text, message] of [
  ["secondary", /secondary zones require a transfer from property/],
  ["secondary {\n transfer\n}", /unexpected line ending after 'transfer'/],
  ["secondary {\n transfer from\n}", /unexpected line ending after 'from'/],
  ["secondary {\n transfer from x\n}", /must specify an IP address/],
  ["secondary {\n transfer from tls://ns.example\n}", /must specify an IP address: 'tls:\/\/ns.example'/],
  ["secondary {\n transfer from tls://192.0.2.1\n tls a b c d\n}", /maximum of three arguments/],
  ["secondary {\n transfer from 192.0.2.1\n catalog example :\n}", /not a zone: ':'/],
  ["secondary {\n transfer from 192.0.2.1\n catalog dns://example\n}", /not a zone: 'dns:\/\/example'/],
  ["secondary {\n foo\n}", /unknown property 'foo'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(secondary, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
