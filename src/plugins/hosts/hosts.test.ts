import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Rcode } from "../../dns/index.ts";
import { answering, PluginTest, type QuestionOptions, until } from "../../plugin/testing.ts";
import type { HostsConfig } from "./config.ts";
import hosts from "./index.ts";

let folder = "";
let count = 0;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "portolan-hosts-"));
});
after(() => rm(folder, { recursive: true }));

async function fileWith(content: string | Uint8Array): Promise<string> {
  const path = join(folder, `hosts-${count++}`);
  await writeFile(path, content);
  return path;
}

async function started(file: string, options = "", keys = ".:53"): Promise<PluginTest<HostsConfig>> {
  const plugin = PluginTest.of(hosts, `hosts ${file} {\n${options}\n}`, { keys });
  await plugin.start();
  return plugin;
}

const passedOn = answering({ rcode: Rcode.REFUSED });

/** The answers, or the outcome of the query. */
async function seen(plugin: PluginTest<HostsConfig>, question: QuestionOptions): Promise<string> {
  const outcome = await plugin.outcome({ next: passedOn, ...question });
  if (outcome.kind === "failed") return `failed ${outcome.rcode}`;
  if (outcome.kind !== "reply") return outcome.kind;
  if (outcome.rcode === Rcode.REFUSED) return "next";
  assert.ok(outcome.authoritative);
  assert.deepEqual(outcome.authority, []);
  const answer = await plugin.ask(question);
  return answer.answer.join("; ");
}

const FILE = `
# a comment
192.0.2.1   www.example.org  www   # more
192.0.2.2   WWW.example.org.
192.0.2.2   www.example.org
2001:DB8::0001 www.example.org
2001:db8::2%eth0 v6.example.org
::ffff:192.0.2.3 mapped.example.org
192.0.2.4   *.example.org \t
2001:db8::4 *.v4.example.org v6.sub.example.org
192.0.2.5   a.v4.example.org
300.1.1.1   bad.example.org
192.0.2.6
192.0.2.7   söme.example.org ${"x".repeat(64)}.example.org good.example.org
010.0.0.1   octal.example.org
`;

const ANSWERS: readonly (readonly [string, string, string])[] = [
  ["WWW.example.org.", "A", "WWW.example.org. 3600 IN A 192.0.2.1; WWW.example.org. 3600 IN A 192.0.2.2"],
  ["www.example.org.", "AAAA", "www.example.org. 3600 IN AAAA 2001:db8::1"],
  ["www.", "A", "www. 3600 IN A 192.0.2.1"],
  ["v6.example.org.", "AAAA", "v6.example.org. 3600 IN AAAA 2001:db8::2"],
  ["mapped.example.org.", "A", "mapped.example.org. 3600 IN A 192.0.2.3"],
  ["good.example.org.", "A", "good.example.org. 3600 IN A 192.0.2.7"],
  // A name without records of the type: an empty answer.
  ["www.example.org.", "MX", ""],
  ["mapped.example.org.", "AAAA", ""],
  // A wildcard stands for one label, and replaces missing addresses of the name itself.
  ["any.example.org.", "A", "any.example.org. 3600 IN A 192.0.2.4"],
  ["two.any.example.org.", "A", "failed 2"],
  ["example.org.", "A", "failed 2"],
  ["v6.example.org.", "A", "v6.example.org. 3600 IN A 192.0.2.4"],
  ["a.v4.example.org.", "A", "a.v4.example.org. 3600 IN A 192.0.2.5"],
  ["a.v4.example.org.", "AAAA", "a.v4.example.org. 3600 IN AAAA 2001:db8::4"],
  ["b.v4.example.org.", "A", ""],
  ["any.example.org.", "TXT", ""],
  // Bad lines are ignored.
  ["bad.example.net.", "A", "failed 2"],
  [".", "A", "failed 2"],
  // Reverse.
  [
    "1.2.0.192.in-addr.arpa.",
    "PTR",
    "1.2.0.192.in-addr.arpa. 3600 IN PTR www.example.org.; 1.2.0.192.in-addr.arpa. 3600 IN PTR www.",
  ],
  ["2.2.0.192.IN-ADDR.ARPA.", "PTR", "2.2.0.192.IN-ADDR.ARPA. 3600 IN PTR www.example.org."],
  [
    `1.${"0.".repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa.`,
    "PTR",
    `1.${"0.".repeat(23)}8.b.d.0.1.0.0.2.ip6.arpa. 3600 IN PTR www.example.org.`,
  ],
  ["4.2.0.192.in-addr.arpa.", "PTR", "next"],
  ["9.2.0.192.in-addr.arpa.", "PTR", "next"],
  ["2.0.192.in-addr.arpa.", "PTR", "next"],
  ["001.2.0.192.in-addr.arpa.", "PTR", "next"],
  ["www.example.org.", "PTR", "next"],
  ["1.2.0.192.in-addr.arpa.", "A", "failed 2"],
];

describe("answers", () => {
  for (const [name, type, expected] of ANSWERS) {
    test(`${name} ${type}`, async () => {
      const plugin = await started(await fileWith(FILE));
      assert.equal(await seen(plugin, { name, type }), expected);
      // Repeated, now from the cache.
      assert.equal(await seen(plugin, { name, type }), expected);
      await plugin.stop();
      assert.equal(plugin.clock.pendingTimers, 0);
    });
  }

  test("with the configured TTL", async () => {
    const plugin = await started(await fileWith("192.0.2.1 a\n"), "ttl 65535");
    assert.equal(await seen(plugin, { name: "a." }), "a. 65535 IN A 192.0.2.1");
    await plugin.stop();
  });

  test("from the file first, then from the lines of the Corefile, wherever they stand", async () => {
    const options = "192.0.2.2 a b # c\nfallthrough\n192.0.2.3 a";
    const plugin = await started(await fileWith("192.0.2.1 a\n"), options);
    assert.deepEqual(
      (await plugin.ask({ name: "a." })).answer,
      ["192.0.2.1", "192.0.2.2", "192.0.2.3"].map((address) => `a. 3600 IN A ${address}`),
    );
    assert.equal(await seen(plugin, { name: "c." }), "next");
    await plugin.stop();
  });

  test("a stored name holds no more memory than its bytes", async () => {
    const plugin = await started(await fileWith("192.0.2.1 a.example.org\n"));
    await plugin.ask({ name: "a.example.org." });
    const { reply } = await plugin.ask({ name: "a.example.org." });
    assert.equal(reply.encoded.bytes.buffer.byteLength, reply.encoded.bytes.length);
    await plugin.stop();
  });

  test("in the spelling of the client", async () => {
    const plugin = await started(await fileWith("192.0.2.1 a.example.org\n"));
    await plugin.ask({ name: "a.example.org." });
    const { reply } = await plugin.ask({ name: "A.eXample.org." });
    assert.equal(reply.encoded.typeAt(0), 1);
    assert.equal(reply.encoded.recordStarts[0], reply.query.questionEnd);
    await plugin.stop();
  });

  test("no PTR with no_reverse", async () => {
    const plugin = await started(await fileWith("192.0.2.1 a\n"), "no_reverse");
    assert.equal(await seen(plugin, { name: "1.2.0.192.in-addr.arpa.", type: "PTR" }), "next");
    assert.equal(plugin.metrics.gauge(ENTRIES).slot(plugin.configs[0]?.file ?? "").value, 1);
    await plugin.stop();
  });

  test("as much as fits, and TC, when the answer exceeds a message", async () => {
    const lines = Array.from(
      { length: 6_000 },
      (_, i) => `192.0.${i >> 8}.${i & 255} all n${i}\n192.0.2.255 n${i}\n`,
    );
    const plugin = await started(await fileWith(lines.join("")));
    for (const question of [{ name: "all." }, { name: "255.2.0.192.in-addr.arpa.", type: "PTR" }]) {
      const { reply } = await plugin.ask(question);
      assert.ok(reply.truncated);
      assert.ok(reply.encoded.answerCount > 3_000);
    }
    await plugin.stop();
  });
});

describe("zones", () => {
  const content = "192.0.2.1 a.example.org a.example.net\n";

  test("names outside them pass", async () => {
    const plugin = await started(`${await fileWith(content)} example.org`);
    assert.equal(await seen(plugin, { name: "a.example.org." }), "a.example.org. 3600 IN A 192.0.2.1");
    assert.equal(await seen(plugin, { name: "a.example.net." }), "next");
    assert.equal(await seen(plugin, { name: "b.example.org." }), "failed 2");
    await plugin.stop();
  });

  test("are those of the server block, reverse zones not needed", async () => {
    const plugin = await started(await fileWith(content), "", "example.org:53");
    const answer = await plugin.ask({ name: "1.2.0.192.in-addr.arpa.", type: "PTR" });
    assert.deepEqual(answer.answer, ["1.2.0.192.in-addr.arpa. 3600 IN PTR a.example.org."]);
    await plugin.stop();
  });
});

describe("fallthrough", () => {
  const content = "192.0.2.1 a.example.org\n";

  for (const [option, name, expected] of [
    ["fallthrough", "x.example.net.", "next"],
    ["fallthrough example.org", "x.example.org.", "next"],
    ["fallthrough example.org", "x.example.net.", "failed 2"],
    ["fallthrough", "a.example.org.", "a.example.org. 3600 IN A 192.0.2.1"],
  ] as const) {
    test(`${option}: ${name}`, async () => {
      const plugin = await started(await fileWith(content), option);
      assert.equal(await seen(plugin, { name }), expected);
      await plugin.stop();
    });
  }

  test("of types that hosts does not serve", async () => {
    const plugin = await started(await fileWith(content), "fallthrough example.org\nfallthrough_unsupported");
    assert.equal(await seen(plugin, { name: "a.example.org.", type: "MX" }), "next");
    assert.equal(await seen(plugin, { name: "a.example.org.", type: "AAAA" }), "");
    await plugin.stop();
  });
});

const ENTRIES = { name: "coredns_hosts_entries", help: "same", labels: ["hostsfile"] };
const RELOADED = { name: "coredns_hosts_reload_timestamp_seconds", help: "same" };

describe("the file", () => {
  test("is read again when it has changed, and kept when it vanishes", async () => {
    const path = await fileWith("192.0.2.1 a\n");
    const plugin = await started(path, "2001:db8::1 a\nreload 2s");
    const entries = plugin.metrics.gauge(ENTRIES).slot(path);
    assert.equal(entries.value, 4);
    assert.equal(plugin.metrics.gauge(RELOADED).slot().value, Date.UTC(2026, 0, 1) / 1000);
    await writeFile(path, "192.0.2.2 a b\n192.0.2.3 *.c\n");
    plugin.clock.advance(2_000);
    await until(() => entries.value === 7);
    assert.equal(plugin.metrics.gauge(RELOADED).slot().value, Date.UTC(2026, 0, 1) / 1000 + 2);
    assert.equal(await seen(plugin, { name: "a." }), "a. 3600 IN A 192.0.2.2");
    await rm(path);
    await until(() => plugin.clock.pendingTimers === 1);
    plugin.clock.advance(2_000);
    await until(() => plugin.log.lines.includes(`[WARNING] plugin/hosts: File does not exist: ${path}`));
    assert.equal(await seen(plugin, { name: "a." }), "a. 3600 IN A 192.0.2.2");
    await plugin.stop();
    await until(() => plugin.clock.pendingTimers === 0);
  });

  test("is read once with reload 0", async () => {
    const plugin = await started(await fileWith("192.0.2.1 a\n"), "reload 0s");
    assert.equal(plugin.clock.pendingTimers, 0);
    assert.equal(await seen(plugin, { name: "a." }), "a. 3600 IN A 192.0.2.1");
    await plugin.stop();
  });

  test("may be missing, and appear later", async () => {
    const path = join(folder, "later");
    const plugin = await started(path, "192.0.2.1 a");
    assert.deepEqual(plugin.log.lines, [
      `[WARNING] plugin/hosts: File does not exist: ${path}`,
      "[DEBUG] plugin/hosts: Parsed hosts file into 2 entries",
    ]);
    assert.equal(await seen(plugin, { name: "a." }), "a. 3600 IN A 192.0.2.1");
    await writeFile(path, "192.0.2.2 b\n");
    plugin.clock.advance(5_000);
    await until(() => plugin.metrics.gauge(ENTRIES).slot(path).value === 4);
    await plugin.stop();
  });

  test("may be a directory, which is a warning", async () => {
    const plugin = await started(folder);
    assert.equal(
      plugin.log.lines[0],
      `[WARNING] plugin/hosts: Hosts file cannot be read: ${folder} is not a regular file`,
    );
    await plugin.stop();
  });

  test("may be long: reading it does not hold up queries", async () => {
    const lines = Array.from({ length: 10_000 }, (_, index) => `0.0.0.0 n${index}.example.org\n`);
    const path = await fileWith(lines.join(""));
    const plugin = PluginTest.of(hosts, `hosts ${path}`);
    let turns = 0;
    let reading = true;
    const starting = plugin.start().finally(() => {
      reading = false;
    });
    while (reading) {
      turns++;
      await nextTurn();
    }
    await starting;
    assert.ok(turns > 5);
    assert.equal(plugin.metrics.gauge(ENTRIES).slot(path).value, 20_000);
    assert.equal(await seen(plugin, { name: "n9999.example.org." }), "n9999.example.org. 3600 IN A 0.0.0.0");
    await plugin.stop();
  });

  test("that cannot be reached prevents the start", async () => {
    const file = await fileWith("");
    const plugin = PluginTest.of(hosts, `hosts ${file}/hosts`);
    await assert.rejects(plugin.start(), {
      name: "SetupError",
      message: /^unable to access hosts file '.*': not a directory; name a readable file, or no file$/,
    });
    await plugin.stop();
  });

  test("that may not be read is a warning", {
    skip: process.getuid?.() === 0 && "root may read every file",
  }, async () => {
    const path = await fileWith("192.0.2.1 a\n");
    await chmod(path, 0);
    const plugin = await started(path);
    assert.match(plugin.log.lines[0] ?? "", /Hosts file cannot be read: EACCES/);
    await plugin.stop();
  });

  test("is looked for below root", async () => {
    const plugin = PluginTest.of(hosts, "hosts names", {
      site: { resolvePath: (path) => join(folder, "nowhere", path) },
    });
    await plugin.start();
    assert.ok(plugin.log.lines[0]?.endsWith(join(folder, "nowhere", "names")));
    await plugin.stop();
  });
});
