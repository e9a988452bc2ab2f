import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { EncodedSections, Rcode } from "../../dns/index.ts";
import type { Next, Random } from "../../plugin/index.ts";
import {
  type Answer,
  answering,
  ConfigRefused,
  PluginTest,
  type PluginTestOptions,
  records,
  until,
} from "../../plugin/testing.ts";
import loadbalance from "./index.ts";

/** Returns the fractions one after the other, and then 0. */
function fractions(...values: number[]): Random {
  return { fraction: () => values.shift() ?? 0, unpredictable: () => 1 };
}

function withRandom(random: Random): PluginTestOptions {
  return { site: { random } };
}

/** Replies as from a cache: encoded, with nothing decoded. */
function answeringEncoded(answer: readonly string[], additional: readonly string[] = []): Next {
  return (query) => {
    const sections = { answer: records(...answer), authority: [], additional: records(...additional) };
    return query.reply({ encoded: EncodedSections.encode(query.question, sections).encoded });
  };
}

const ADDRESSES = ["a. 5 IN A 192.0.2.1", "a. 5 IN A 192.0.2.2", "a. 5 IN A 192.0.2.3"];

async function asked(plugin: PluginTest<unknown>, next: Next, type = "A"): Promise<Answer> {
  return plugin.ask({ name: "a.", type, next });
}

describe("round robin over octets", () => {
  for (const [title, answer] of [
    ["addresses", ADDRESSES],
    ["an alias before them", ["a. 5 IN CNAME b.", "b. 5 IN A 192.0.2.1", "b. 5 IN A 192.0.2.2"]],
    ["other types before them", ["a. 5 IN TXT x", ...ADDRESSES]],
    [
      "signatures behind them",
      [...ADDRESSES, "a. 5 IN RRSIG A 13 1 5 20300101000000 20200101000000 1 . AAAA", "a. 5 IN MX 1 b."],
    ],
  ] as const) {
    test(`leaves ${title} to the writer of the reply`, async () => {
      const plugin = PluginTest.of(loadbalance, "loadbalance", withRandom(fractions(0.5)));
      const { reply } = await asked(plugin, answeringEncoded(answer));
      assert.ok(reply.isEncoded);
      assert.equal(reply.shuffle, 0x2000_0000);
      assert.equal(reply.encoded.count, answer.length);
    });
  }

  test("has nothing to do for one address", async () => {
    const plugin = PluginTest.of(loadbalance, "loadbalance round_robin", withRandom(fractions(0.5)));
    const { reply } = await asked(plugin, answeringEncoded(["a. 5 IN CNAME b.", "b. 5 IN A 192.0.2.1"]));
    assert.equal(reply.shuffle, 0);
    assert.ok(reply.isEncoded);
  });

  test("never requests a shuffle with seed 0", async () => {
    for (const fraction of [0, 0.999_999_999]) {
      const plugin = PluginTest.of(loadbalance, "loadbalance", withRandom(fractions(fraction)));
      const { reply } = await asked(plugin, answeringEncoded(ADDRESSES));
      assert.ok(reply.shuffle > 0 && reply.shuffle <= 0x3fff_ffff);
    }
  });
});

describe("round robin over records", () => {
  test("puts aliases first and addresses last, shuffled", async () => {
    const plugin = PluginTest.of(loadbalance, "loadbalance", withRandom(fractions(0, 0)));
    const [one = "", two = "", three = ""] = ADDRESSES;
    const answer = await asked(
      plugin,
      answeringEncoded([one, two, "a. 5 IN TXT x", three, "a. 5 IN CNAME b."]),
    );
    assert.deepEqual(answer.answer, ["a. 5 IN CNAME b.", 'a. 5 IN TXT "x"', two, three, one]);
    assert.equal(answer.reply.shuffle, 0);
  });

  test("shuffles mail exchangers, in each section for itself", async () => {
    const plugin = PluginTest.of(loadbalance, "loadbalance", withRandom(fractions(0, 0)));
    const mail = ["a. 5 IN MX 1 b.", "a. 5 IN MX 1 c."];
    const answer = await asked(
      plugin,
      answeringEncoded(mail, ["b. 5 IN A 192.0.2.1", "c. 5 IN A 192.0.2.2"]),
      "MX",
    );
    assert.deepEqual(answer.answer, ["a. 5 IN MX 1 c.", "a. 5 IN MX 1 b."]);
    assert.deepEqual(answer.additional, ["c. 5 IN A 192.0.2.2", "b. 5 IN A 192.0.2.1"]);
  });

  test("makes every order equally likely", async () => {
    const plugin = PluginTest.of(
      loadbalance,
      "loadbalance",
      withRandom({ ...fractions(), fraction: Math.random }),
    );
    const mail = ["1", "2", "3"].map((host) => `a. 5 IN MX 1 ${host}.`);
    const seen = new Map<string, number>();
    for (let count = 0; count < 1_200; count++) {
      const order = (await asked(plugin, answering({ answer: records(...mail) }))).answer.join();
      seen.set(order, (seen.get(order) ?? 0) + 1);
    }
    assert.equal(seen.size, 6);
    // Each is expected 200 times; a fair shuffle deviates by 80 less than once in a billion runs.
    for (const count of seen.values()) assert.ok(count > 120 && count < 280);
  });

  test("does not change the records of others", async () => {
    const plugin = PluginTest.of(loadbalance, "loadbalance", withRandom(fractions(0)));
    const shared = Object.freeze(records("a. 5 IN MX 1 b.", "a. 5 IN MX 1 c."));
    const answer = await asked(plugin, answering({ answer: shared }));
    assert.notEqual(answer.reply.answer, shared);
  });
});

describe("leaves alone", () => {
  for (const [title, type, rcode] of [
    ["errors", "A", Rcode.NXDOMAIN],
    ["zone transfers", "AXFR", Rcode.NOERROR],
    ["incremental transfers", "IXFR", Rcode.NOERROR],
  ] as const) {
    test(title, async () => {
      const plugin = PluginTest.of(loadbalance, "loadbalance");
      const { reply } = await asked(plugin, answering({ rcode, answer: records(...ADDRESSES) }), type);
      assert.equal(reply.shuffle, 0);
    });
  }

  test("failures pass, and late answers are waited for", async () => {
    const plugin = PluginTest.of(loadbalance, "loadbalance");
    const failed = plugin.outcome({ name: "a." });
    assert.ok(!(failed instanceof Promise) && failed.kind === "failed");
    const later = plugin.outcome({ name: "a.", next: async (query) => answeringEncoded(ADDRESSES)(query) });
    assert.ok(later instanceof Promise);
    const outcome = await later;
    assert.ok(outcome.kind === "reply" && outcome.shuffle > 0);
  });
});

describe("prefer", () => {
  const mixed = [
    "a. 5 IN TXT x",
    "a. 5 IN A 192.0.2.1",
    "a. 5 IN AAAA 2001:db8::1",
    "a. 5 IN MX 1 b.",
    "a. 5 IN A 10.0.0.1",
    "a. 5 IN A 192.0.2.2",
    "a. 5 IN CNAME b.",
  ];

  test("puts the addresses of networks first, in the order of the networks", async () => {
    const options = withRandom(fractions(0.99, 0.99, 0.99));
    const plugin = PluginTest.of(loadbalance, "loadbalance {\n prefer 10.0.0.0/8 2001:db8::/32\n}", options);
    const answer = await asked(
      plugin,
      answeringEncoded(mixed, ["b. 5 IN A 192.0.2.9", "b. 5 IN A 10.9.9.9"]),
    );
    assert.deepEqual(answer.answer, [
      "a. 5 IN CNAME b.",
      "a. 5 IN A 10.0.0.1",
      "a. 5 IN AAAA 2001:db8::1",
      "a. 5 IN A 192.0.2.1",
      "a. 5 IN A 192.0.2.2",
      "a. 5 IN MX 1 b.",
      'a. 5 IN TXT "x"',
    ]);
    assert.deepEqual(answer.additional, ["b. 5 IN A 10.9.9.9", "b. 5 IN A 192.0.2.9"]);
  });

  test("adds up over its lines, and the first network that contains the address counts", async () => {
    const text = "loadbalance {\n prefer 192.0.2.2/32\n prefer 192.0.2.0/24\n}";
    const plugin = PluginTest.of(loadbalance, text, withRandom(fractions(0.99, 0.99)));
    assert.deepEqual((await asked(plugin, answeringEncoded(ADDRESSES))).answer, [
      ADDRESSES[1],
      ADDRESSES[0],
      ADDRESSES[2],
    ]);
  });

  test("shuffles within a network", async () => {
    const plugin = PluginTest.of(
      loadbalance,
      "loadbalance {\n prefer 192.0.2.0/24\n}",
      withRandom(fractions(0, 0)),
    );
    assert.deepEqual((await asked(plugin, answeringEncoded(ADDRESSES))).answer, [
      ADDRESSES[1],
      ADDRESSES[2],
      ADDRESSES[0],
    ]);
  });

  test("does not change a single address", async () => {
    const plugin = PluginTest.of(loadbalance, "loadbalance {\n prefer 192.0.2.0/24\n}");
    assert.ok((await asked(plugin, answeringEncoded(["a. 5 IN A 192.0.2.1"]))).reply.isEncoded);
  });
});

describe("weighted", () => {
  let folder = "";
  let count = 0;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "portolan-weights-"));
  });
  after(() => rm(folder, { recursive: true }));

  async function weighted(content: string, random: Random, options = ""): Promise<PluginTest<unknown>> {
    const path = join(folder, `weights-${count++}`);
    await writeFile(path, content);
    const plugin = PluginTest.of(
      loadbalance,
      `loadbalance weighted ${path} {\n${options}\n}`,
      withRandom(random),
    );
    await plugin.start();
    return plugin;
  }

  const weights = "# weights\nA\n192.0.2.1 3  # most\n192.0.2.2 1\n\nb.\n2001:DB8::1 255\n";

  for (const [fraction, front] of [
    [0, 0],
    [0.59, 0],
    [0.6, 1],
    [0.79, 1],
    [0.8, 2],
    [0.999, 2],
  ] as const) {
    test(`draws by weight: ${fraction} gives address ${front}`, async () => {
      const plugin = await weighted(weights, fractions(fraction));
      const expected = [...ADDRESSES];
      expected[0] = ADDRESSES[front] ?? "";
      expected[front] = ADDRESSES[0] ?? "";
      assert.deepEqual((await asked(plugin, answeringEncoded(ADDRESSES))).answer, expected);
      await plugin.stop();
    });
  }

  test("swaps within additional, by each record's own name, whatever its case", async () => {
    const plugin = await weighted(weights, fractions(0.01));
    const additional = ["c. 5 IN A 192.0.2.1", "d. 5 IN TXT x", "B. 5 IN AAAA 2001:db8::1"];
    const answer = await asked(plugin, answeringEncoded(["a. 5 IN SRV 0 0 1 z."], additional), "SRV");
    assert.deepEqual(answer.additional, [
      "B. 5 IN AAAA 2001:db8::1",
      'd. 5 IN TXT "x"',
      "c. 5 IN A 192.0.2.1",
    ]);
    await plugin.stop();
  });

  test("does not change other types", async () => {
    const plugin = await weighted(weights, fractions(0.999));
    const answer = await asked(plugin, answeringEncoded(ADDRESSES), "ANY");
    assert.deepEqual(answer.answer, ADDRESSES);
    await plugin.stop();
  });

  test("comes before prefer", async () => {
    const plugin = await weighted(weights, fractions(0.999), "prefer 192.0.2.2/32");
    const answer = await asked(plugin, answeringEncoded(ADDRESSES));
    assert.deepEqual(answer.answer, [ADDRESSES[1], ADDRESSES[2], ADDRESSES[0]]);
    await plugin.stop();
  });

  test("reads the file again when it changes, and keeps the weights when it is faulty", async () => {
    const path = join(folder, "changing");
    const plugin = PluginTest.of(
      loadbalance,
      `loadbalance weighted ${path} {\n reload 10s\n}`,
      withRandom(fractions()),
    );
    await plugin.start();
    assert.match(
      plugin.log.lines[0] ?? "",
      /^\[WARNING\] plugin\/loadbalance: weight file .*changing cannot be read: no such file or directory/,
    );
    await writeFile(path, "a\n192.0.2.1 5\n");
    plugin.clock.advance(10_000);
    await until(() => plugin.log.lines.length === 2 && plugin.clock.pendingTimers === 1);
    assert.equal(plugin.log.lines[1], `[INFO] plugin/loadbalance: Successfully reloaded weight file ${path}`);
    await writeFile(path, "192.0.2.1 5\n");
    plugin.clock.advance(10_000);
    await until(() => plugin.log.lines.length === 3);
    assert.equal(
      plugin.log.lines[2],
      `[ERROR] plugin/loadbalance: missing domain name in weight file ${path}, line 1; keeping the previous weights`,
    );
    await plugin.stop();
    await until(() => plugin.clock.pendingTimers === 0);
  });

  test("needs the file at the start if reload is off", async () => {
    const path = join(folder, "missing");
    const plugin = PluginTest.of(loadbalance, `loadbalance weighted ${path} {\n reload 0\n}`);
    await assert.rejects(plugin.start(), {
      name: "SetupError",
      message:
        /^weight file .*missing cannot be read: no such file or directory; create it, or set reload above 0$/,
    });
    assert.equal(plugin.clock.pendingTimers, 0);
  });

  for (const [content, message] of [
    ["a b c\n", /^could not parse weight line:"a b c" in weight file .*, line 1$/],
    [
      "192.0.2.1\n",
      /^wrong domain name:"192.0.2.1" in weight file .*, line 1\. \(Maybe a missing weight value\?\)$/,
    ],
    ["a..b\n", /^wrong domain name:"a..b"/],
    ["a\n\nb 4\n", /^wrong IP address:"b" in weight file .*, line 3$/],
    ["a\n192.0.2.1 0\n", /^wrong weight value:"0" in weight file/],
    ["a\n192.0.2.1 256\n", /^wrong weight value:"256"/],
    ["a\n192.0.2.1 1.5\n", /^wrong weight value:"1.5"/],
    ["192.0.2.1 4\n", /^missing domain name in weight file .*, line 1$/],
  ] as const) {
    test(`refuses to start with ${JSON.stringify(content)}`, async () => {
      await assert.rejects(weighted(content, fractions()), { name: "SetupError", message });
    });
  }
});

describe("refuses", () => {
  for (const [text, code, message] of [
    ["loadbalance random", "PLUGIN_BAD_VALUE", /2:13: error: unknown policy: random/],
    ["loadbalance weighted", "LOADBALANCE_WEIGHT_FILE", /missing weight file argument/],
    ["loadbalance round_robin file", "LOADBALANCE_WEIGHT_FILE", /unexpected argument\(s\)/],
    ["loadbalance weighted a b", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'b'/],
    ["loadbalance {\n reload 5s\n}", "LOADBALANCE_RELOAD", /3:2: error: unknown property for round_robin/],
    ["loadbalance weighted f {\n reload -5s\n}", "PLUGIN_BAD_VALUE", /'-5s' is not a duration/],
    ["loadbalance {\n prefer\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'prefer'/],
    ["loadbalance {\n prefer 10.0.0.0/33\n}", "PLUGIN_BAD_VALUE", /invalid CIDR 10.0.0.0\/33/],
    ["loadbalance {\n prefer 10.0.0.0\n}", "PLUGIN_BAD_VALUE", /invalid CIDR 10.0.0.0/],
    ["loadbalance {\n preferr 10.0.0.0/8\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'preferr'/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(loadbalance, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});
