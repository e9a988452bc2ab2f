import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, it } from "node:test";
import { Rcode } from "../../dns/index.ts";
import { answering, ConfigRefused, PluginTest, records, until } from "../../plugin/testing.ts";
import type { IstioConfig } from "./config.ts";
import { answers, entry, PORT, type Spec, VIP, vip } from "./fixtures/entries.ts";
import istio from "./index.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Running = PluginTest<IstioConfig> & { write(...entries: readonly object[]): Promise<void> };

async function fromFiles(entries: readonly object[], ...lines: readonly string[]): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), "istio-"));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "entries.json");
  const write = (all: readonly object[]): void =>
    writeFileSync(file, JSON.stringify({ apiVersion: "v1", kind: "List", items: all }));
  write(entries);
  const test = PluginTest.of(istio, `istio {\nmanifests ${folder}\n${lines.join("\n")}\n}`);
  await test.start();
  cleanups.push(async () => {
    await test.stop();
    assert.equal(test.clock.pendingTimers, 0, "no timer outlives stop()");
  });
  return Object.assign(test, {
    write: async (...all: readonly object[]): Promise<void> => {
      write(all);
      test.clock.advance(2_000);
      await new Promise((resolve) => setTimeout(resolve, 0));
    },
  });
}

describe("what Istio's plugin answered", () => {
  type Row = readonly [
    what: string,
    entries: readonly object[],
    lines: readonly string[],
    questions: readonly (readonly [name: string, type: string, expected: readonly string[] | "NXDOMAIN"])[],
  ];
  const one = (spec: Spec): object[] => [entry("one", spec)];
  const rows: readonly Row[] = [
    [
      "addresses of an entry, the owner spelled as in the query",
      one({ hosts: ["svc.global"], addresses: ["127.255.0.2", "127.255.0.3"] }),
      [],
      [
        ["svc.global.", "A", [...vip("svc.global."), ...vip("svc.global.", "127.255.0.3")]],
        ["SVC.Global.", "A", [...vip("SVC.Global."), ...vip("SVC.Global.", "127.255.0.3")]],
      ],
    ],
    [
      "hosts spelled with capitals",
      one({ hosts: ["Svc.Global"], addresses: VIP }),
      [],
      [["svc.global.", "A", vip("svc.global.")]],
    ],
    [
      "a wildcard matches any number of labels, and not the name below which it is",
      one({ hosts: ["*.test.global"], addresses: VIP }),
      [],
      [
        ["service1.test.global.", "A", vip("service1.test.global.")],
        ["a.b.test.global.", "A", vip("a.b.test.global.")],
        ["test.global.", "A", "NXDOMAIN"],
        ["atest.global.", "A", "NXDOMAIN"],
        ["global.", "A", "NXDOMAIN"],
      ],
    ],
    [
      "a wildcard of one label matches, too",
      one({ hosts: ["*.global"], addresses: VIP }),
      [],
      [
        ["a.global.", "A", vip("a.global.")],
        ["global.", "A", "NXDOMAIN"],
      ],
    ],
    [
      "the longest match wins, and a name before any wildcard",
      [
        entry("short", { hosts: ["*.global"], addresses: ["127.255.0.1"] }),
        entry("long", { hosts: ["*.test.global"], addresses: ["127.255.0.2"] }),
        entry("exact", { hosts: ["a.test.global"], addresses: ["127.255.0.3"] }),
      ],
      [],
      [
        ["a.test.global.", "A", vip("a.test.global.", "127.255.0.3")],
        ["b.test.global.", "A", vip("b.test.global.")],
        ["a.a.test.global.", "A", vip("a.a.test.global.")],
        ["b.global.", "A", vip("b.global.", "127.255.0.1")],
      ],
    ],
    [
      "AAAA and other types of a host have no records, and are no error",
      one({ hosts: ["svc.global"], addresses: VIP }),
      [],
      [
        ["svc.global.", "AAAA", []],
        ["svc.global.", "SRV", []],
        ["svc.global.", "CNAME", []],
        ["other.global.", "AAAA", "NXDOMAIN"],
      ],
    ],
    [
      "IPv6 addresses answer AAAA",
      one({ hosts: ["svc.global"], addresses: ["2001:db8::1", "127.255.0.2"] }),
      [],
      [
        ["svc.global.", "AAAA", ["svc.global. 3600 IN AAAA 2001:db8::1"]],
        ["svc.global.", "A", vip("svc.global.")],
      ],
    ],
    [
      "networks are passed over, also those of one address",
      one({
        hosts: ["svc.global"],
        addresses: ["10.0.0.0/8", "127.255.0.2", "127.255.0.9/32"],
        resolution: "STATIC",
      }),
      [],
      [["svc.global.", "A", vip("svc.global.")]],
    ],
    [
      "an entry of networks alone has no address, and gets no default",
      one({ hosts: ["svc.global"], addresses: ["10.0.0.0/8"], resolution: "STATIC" }),
      ["default_address 127.255.0.9"],
      [["svc.global.", "A", "NXDOMAIN"]],
    ],
    [
      "resolution NONE, or none at all, is no entry for DNS",
      [
        entry("none", { hosts: ["a.global"], addresses: VIP, resolution: "NONE" }),
        entry("missing", { hosts: ["b.global"], addresses: VIP, resolution: "" }),
      ],
      [],
      [
        ["a.global.", "A", "NXDOMAIN"],
        ["b.global.", "A", "NXDOMAIN"],
      ],
    ],
    [
      "without addresses there is nothing, unless there is a default",
      one({ hosts: ["svc.global", "*.svc.global"] }),
      [],
      [["svc.global.", "A", "NXDOMAIN"]],
    ],
    [
      "the default address",
      one({ hosts: ["svc.global", "*.svc.global"] }),
      ["default_address 127.255.0.9 2001:db8::9"],
      [
        ["svc.global.", "A", vip("svc.global.", "127.255.0.9")],
        ["a.svc.global.", "A", vip("a.svc.global.", "127.255.0.9")],
        ["svc.global.", "AAAA", ["svc.global. 3600 IN AAAA 2001:db8::9"]],
      ],
    ],
    [
      "of two entries with one host the later one counts, without merging",
      [
        entry(
          "b",
          { hosts: ["svc.global"], addresses: ["127.255.0.2"] },
          { created: "2019-06-02T00:00:00Z" },
        ),
        entry(
          "a",
          { hosts: ["svc.global"], addresses: ["127.255.0.1"] },
          { created: "2019-06-03T00:00:00Z" },
        ),
        entry(
          "c",
          { hosts: ["svc.global"], addresses: ["127.255.0.3"] },
          { created: "2019-06-01T00:00:00Z" },
        ),
      ],
      [],
      [["svc.global.", "A", vip("svc.global.", "127.255.0.1")]],
    ],
    [
      "several hosts share the addresses, where ports tell them apart",
      one({
        hosts: ["a.global", "b.global"],
        addresses: VIP,
        ports: [PORT, { number: 443, protocol: "TLS" }],
      }),
      [],
      [
        ["a.global.", "A", vip("a.global.")],
        ["b.global.", "A", vip("b.global.")],
      ],
    ],
    [
      "ttl",
      one({ hosts: ["svc.global"], addresses: VIP }),
      ["ttl 5"],
      [["svc.global.", "A", ["svc.global. 5 IN A 127.255.0.2"]]],
    ],
  ];
  for (const [what, entries, lines, questions] of rows) {
    it(what, async () => {
      const test = await fromFiles(entries, ...lines);
      for (const [name, type, expected] of questions)
        assert.deepEqual(await answers(test, name, type), expected, `${name} ${type}`);
    });
  }

  const invalid: readonly (readonly [what: string, spec: Spec, problem: RegExp])[] = [
    ["no host", { hosts: [] }, /spec\.hosts is empty/],
    ["the host *", { hosts: ["*"] }, /spec\.hosts: "\*" is not a host/],
    ["a wildcard inside", { hosts: ["a.*.global"] }, /"a\.\*\.global" is not a host/],
    ["no name", { hosts: ["a..b"] }, /"a\.\.b" is not a host/],
    [
      "a bad address",
      { hosts: ["svc.global"], addresses: ["10.0.0.256"] },
      /"10\.0\.0\.256" is not an IP address/,
    ],
    [
      "a bad network",
      { hosts: ["svc.global"], addresses: ["10.0.0.0/33"] },
      /"10\.0\.0\.0\/33" is not an IP address/,
    ],
    [
      "several hosts and a port of TCP",
      { hosts: ["svc.global", "b.global"], ports: [{ number: 3306, protocol: "TCP" }] },
      /a port of protocol TCP serves one host, and there are 2/,
    ],
  ];
  for (const [what, spec, problem] of invalid) {
    it(`skips an entry with ${what}, and logs it`, async () => {
      const test = await fromFiles([
        entry("bad", { addresses: VIP, ...spec }),
        entry("good", { hosts: ["good.global"], addresses: VIP }),
      ]);
      assert.equal(await answers(test, "svc.global."), "NXDOMAIN");
      assert.deepEqual(await answers(test, "good.global."), vip("good.global."));
      assert.match(test.log.lines.join("\n"), problem);
    });
  }
});

describe("automatic addresses", () => {
  const status = {
    addresses: [
      { value: "240.240.0.1", host: "a.example" },
      { value: "2001:2::1", host: "a.example" },
      { value: "240.240.0.2", host: "b.example" },
    ],
  };

  it("allocated by Istio's controller are answered, each for its host", async () => {
    const test = await fromFiles([
      entry("one", { hosts: ["a.example", "b.example", "c.example"] }, { status }),
    ]);
    assert.deepEqual(await answers(test, "a.example."), vip("a.example.", "240.240.0.1"));
    assert.deepEqual(await answers(test, "a.example.", "AAAA"), ["a.example. 3600 IN AAAA 2001:2::1"]);
    assert.deepEqual(await answers(test, "b.example."), vip("b.example.", "240.240.0.2"));
    assert.equal(await answers(test, "c.example."), "NXDOMAIN");
  });

  it("are overridden by those of the entry, and to its label", async () => {
    const labels = { "networking.istio.io/enable-autoallocate-ip": "false" };
    const test = await fromFiles(
      [
        entry("one", { hosts: ["a.example"], addresses: VIP }, { status }),
        entry("two", { hosts: ["b.example"] }, { status, labels }),
      ],
      "automatic_addresses",
    );
    assert.deepEqual(await answers(test, "a.example."), vip("a.example."));
    assert.equal(await answers(test, "b.example."), "NXDOMAIN");
  });

  it("are allocated by the plugin if no controller does, for hosts but not for wildcards", async () => {
    const entries = [
      entry("one", { hosts: ["a.example"] }),
      entry("two", { hosts: ["*.b.example"] }),
      entry("three", { hosts: ["c.example"], resolution: "NONE" }),
    ];
    const test = await fromFiles(entries, "automatic_addresses", "default_address 127.255.0.9");
    const [a = ""] = await answers(test, "a.example.");
    assert.match(a, /^a\.example\. 3600 IN A 240\.240\.\d+\.\d+$/);
    assert.match((await answers(test, "a.example.", "AAAA"))[0] ?? "", /AAAA 2001:2::f0f0:[0-9a-f]+$/);
    assert.deepEqual(await answers(test, "x.b.example."), vip("x.b.example.", "127.255.0.9"));
    assert.equal(await answers(test, "c.example."), "NXDOMAIN");
  });
});

describe("istio", () => {
  it("follows changes, invalidates caches, and logs them like Istio's plugin", async () => {
    const test = await fromFiles([entry("one", { hosts: ["*.test.global"], addresses: VIP })]);
    await until(() => test.clock.pendingTimers > 1);
    test.clock.advance(1);
    assert.match(test.log.lines.join("\n"), /Have 1 service entries/);
    assert.match(test.log.lines.join("\n"), /adding DNS mapping: \.test\.global\.->\[127\.255\.0\.2\]/);
    await test.write(entry("one", { hosts: ["*.test.global"], addresses: ["127.255.0.7"] }));
    const expected = vip("a.test.global.", "127.255.0.7");
    await until(() => test.log.lines.length > 0);
    for (let tries = 0; tries < 1_000; tries++) {
      if ((await answers(test, "a.test.global."))[0] === expected[0]) break;
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(await answers(test, "a.test.global."), expected);
    const { body } = await test.metrics.expose();
    assert.match(body, /^portolan_istio_service_entries 1$/m);
    assert.match(body, /^portolan_istio_hosts 1$/m);
    assert.match(body, /^portolan_istio_store_octets [1-9]\d+$/m);
  });

  it("ignores other zones, and falls through if configured", async () => {
    const folder = mkdtempSync(join(tmpdir(), "istio-"));
    cleanups.push(() => rmSync(folder, { recursive: true }));
    writeFileSync(
      join(folder, "one.json"),
      JSON.stringify(entry("one", { hosts: ["a.global"], addresses: VIP })),
    );
    const test = PluginTest.of(istio, `istio global {\nmanifests ${folder}\nfallthrough b.global\n}`);
    await test.start();
    cleanups.push(() => test.stop());
    const next = answering({ answer: records("elsewhere. 5 IN A 192.0.2.9") });
    for (const name of ["a.example.", "x.b.global."])
      assert.deepEqual((await test.ask({ name, next })).answer, ["elsewhere. 5 IN A 192.0.2.9"]);
    assert.equal((await test.ask({ name: "c.global.", next })).rcode, Rcode.NXDOMAIN);
    assert.deepEqual((await test.ask({ name: "a.global.", next })).answer, vip("a.global."));
  });
});

for (const [text, message] of [
  ["istio {\ndefault_address\n}", /unexpected line ending after 'default_address'/],
  ["istio {\ndefault_address x\n}", /default_address: 'x' is not an IP address/],
  ["istio {\nttl x\n}", /'x' is not a whole number from 0 to 86400/],
  ["istio {\nendpoint ftp://x\n}", /ftp/],
  ["istio {\nbogus\n}", /unknown property 'bogus'/],
  ["istio\nistio", /this plugin can only be used once per Server Block/],
] as const) {
  it(`refuses ${JSON.stringify(text)}`, () =>
    assert.throws(
      () => PluginTest.of(istio, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    ));
}
