import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, it } from "node:test";
import { Flag, Name, Rcode, rcodeName } from "../../dns/index.ts";
import type { SearchPathSource } from "../../plugin/contract/search-path.ts";
import { DROPPED, type Next, type Outcome, type Query } from "../../plugin/index.ts";
import { Answer, ConfigRefused, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import erratic from "../erratic/index.ts";
import autopath from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "portolan-autopath-"));
after(() => rmSync(folder, { recursive: true }));

const PATH = ["shop.svc.cluster.local.", "svc.cluster.local.", "cluster.local.", "corp.example."];
const resolvConf = join(folder, "resolv.conf");
writeFileSync(resolvConf, `nameserver 192.0.2.1\nsearch ${PATH.join(" ")}\n`);

type Tell = (query: Query) => Outcome | Promise<Outcome>;

/** The rest of the chain: knows some names, and records the names in queries. */
function zone(known: Readonly<Record<string, Tell>>, wait = false) {
  const asked: string[] = [];
  const next: Next = (query) => {
    asked.push(query.name.toString());
    const tell = known[query.name.toLowerCase().toString()];
    const outcome =
      tell?.(query) ??
      query.reply({
        rcode: Rcode.NXDOMAIN,
        authority: records(
          `cluster.local. 5 IN SOA ns.${query.name} hostmaster.cluster.local. 1 7200 1800 86400 5`,
        ),
      });
    return wait ? Promise.resolve(outcome) : outcome;
  };
  return { asked, next };
}

const address: Tell = (query) =>
  query.reply({ answer: records(`${query.name} 7 IN A 192.0.2.7`), authenticData: true });
const TYPED = "www.example.com.shop.svc.cluster.local.";
const TRIED = [TYPED, ...PATH.slice(1).map((suffix) => `www.example.com.${suffix}`), "www.example.com."];

describe("autopath with a file", () => {
  async function start(directive = `autopath ${resolvConf}`, keys = ".:53") {
    const plugin = PluginTest.of(autopath, directive, { keys });
    await plugin.start();
    return plugin;
  }

  async function ask(
    known: Readonly<Record<string, Tell>>,
    question: Partial<QuestionOptions> = {},
    wait = false,
  ) {
    const plugin = await start();
    const { asked, next } = zone(known, wait);
    const outcome = await plugin.outcome({ name: TYPED, ...question, next });
    const { body } = await plugin.metrics.expose();
    const counted = /^coredns_autopath_success_total\{server="dns:\/\/:53"\} (\d+)$/m.exec(body)?.[1] ?? "0";
    return { outcome, asked, counted: Number(counted) };
  }

  for (const wait of [false, true]) {
    const when = wait ? "later" : "at once";
    it(`finds the name as typed after all others, ${when}`, async () => {
      const { outcome, asked, counted } = await ask({ "www.example.com.": address }, {}, wait);
      assert.deepEqual(asked, TRIED);
      assert.ok(outcome.kind === "reply");
      assert.deepEqual(new Answer(outcome).answer, [
        `${TYPED} 7 IN CNAME www.example.com.`,
        "www.example.com. 7 IN A 192.0.2.7",
      ]);
      assert.equal(outcome.query.name.toString(), TYPED);
      assert.equal(outcome.flags & Flag.AD, 0);
      assert.equal(counted, 1);
    });

    it(`returns the first denial if nothing exists, ${when}`, async () => {
      const { outcome, asked, counted } = await ask({}, {}, wait);
      assert.deepEqual(asked, TRIED);
      assert.ok(outcome.kind === "reply" && outcome.rcode === Rcode.NXDOMAIN);
      assert.match(new Answer(outcome).authority.join(), new RegExp(`SOA ns\\.${TYPED}`));
      assert.equal(counted, 0);
    });
  }

  it("stops at the first name that exists", async () => {
    const known = { "www.example.com.cluster.local.": address, "www.example.com.": address };
    const { outcome, asked } = await ask(known);
    assert.deepEqual(asked, TRIED.slice(0, 3));
    assert.ok(outcome.kind === "reply");
    assert.match(new Answer(outcome).answer[0] ?? "", /CNAME www\.example\.com\.cluster\.local\.$/);
  });

  it("does not change the answer to the name itself, even an alias", async () => {
    const alias: Tell = (query) =>
      query.reply({ answer: records(`${query.name} 5 IN CNAME a.example.`, "a.example. 5 IN A 192.0.2.1") });
    const { outcome, asked, counted } = await ask({ [TYPED]: alias });
    assert.deepEqual(asked, [TYPED]);
    assert.ok(outcome.kind === "reply");
    assert.deepEqual(new Answer(outcome).answer, [
      `${TYPED} 5 IN CNAME a.example.`,
      "a.example. 5 IN A 192.0.2.1",
    ]);
    assert.equal(counted, 1);
  });

  it("stops at a name that has no records of this type", async () => {
    const empty: Tell = (query) =>
      query.reply({ authority: records("example.com. 9 IN SOA a. b. 1 2 3 4 5") });
    const { outcome, asked } = await ask({
      "www.example.com.svc.cluster.local.": empty,
      "www.example.com.": address,
    });
    assert.deepEqual(asked, TRIED.slice(0, 2));
    assert.ok(outcome.kind === "reply" && outcome.rcode === Rcode.NOERROR);
    assert.deepEqual(new Answer(outcome).answer, []);
    assert.deepEqual(new Answer(outcome).authority, ["example.com. 9 IN SOA a. b. 1 2 3 4 5"]);
  });

  it("keeps the client's spelling", async () => {
    const { outcome, asked } = await ask(
      { "www.example.com.": address },
      { name: "WWW.example.COM.Shop.svc.cluster.LOCAL." },
    );
    assert.equal(asked.at(-1), "WWW.example.COM.");
    assert.ok(outcome.kind === "reply");
    assert.deepEqual(new Answer(outcome).answer, [
      "WWW.example.COM.Shop.svc.cluster.LOCAL. 7 IN CNAME WWW.example.COM.",
      "WWW.example.COM. 7 IN A 192.0.2.7",
    ]);
  });

  const outcomes: [title: string, tell: Tell, expected: string, tried: number][] = [
    [
      "ends with a failure that has a reason",
      (query) => query.fail(Rcode.SERVFAIL, new Error("no way")),
      "failed SERVFAIL",
      2,
    ],
    ["passes over a failure without reason", (query) => query.fail(Rcode.REFUSED), "reply NOERROR", 5],
    [
      "takes an error that is a reply for the answer",
      (query) => query.reply({ rcode: Rcode.SERVFAIL }),
      "reply SERVFAIL",
      2,
    ],
    ["says nothing where the chain says nothing", () => DROPPED, "dropped", 2],
  ];
  for (const [title, tell, expected, tried] of outcomes) {
    it(title, async () => {
      const known = { "www.example.com.svc.cluster.local.": tell, "www.example.com.": address };
      const { outcome, asked } = await ask(known);
      const found = outcome.kind === "dropped" ? "dropped" : `${outcome.kind} ${rcodeName(outcome.rcode)}`;
      assert.equal(found, expected);
      assert.equal(asked.length, tried);
    });
  }

  const untouched: [title: string, question: Partial<QuestionOptions>][] = [
    ["a name outside of the path", { name: "www.example.com." }],
    ["a name that only a later element has", { name: "www.example.com.svc.cluster.local." }],
    ["the first element itself", { name: "shop.svc.cluster.local." }],
    ["a name that looks like one below it", { name: "www.workshop.svc.cluster.local." }],
    ["a transfer", { type: "AXFR" }],
  ];
  for (const [title, question] of untouched) {
    it(`passes ${title} on`, async () => {
      const { asked, counted } = await ask({}, question);
      assert.equal(asked.length, 1);
      assert.equal(counted, 0);
    });
  }

  it("skips names that would be too long", async () => {
    const label = "a".repeat(63);
    const long = `${label}.${label}.${label}.${"b".repeat(35)}.`;
    const plugin = PluginTest.of(autopath, "autopath @source", {
      neighbours: [sourceOf(["s.", "very.long.suffix.of.a.name.example.", "t."])],
    });
    await plugin.start();
    const { asked, next } = zone({});
    await plugin.outcome({ name: `${long}s.`, next });
    assert.deepEqual(asked, [`${long}s.`, `${long}t.`, long]);
  });

  it("acts only in its own zones", async () => {
    for (const [zones, tries] of [
      ["cluster.local", 5],
      ["example.com svc.cluster.local", 5],
      ["example.com", 1],
    ] as const) {
      const plugin = await start(`autopath ${zones} ${resolvConf}`);
      const { asked, next } = zone({});
      await plugin.outcome({ name: TYPED, next });
      assert.equal(asked.length, tries, zones);
    }
    const plugin = await start(`autopath ${resolvConf}`, "example.com:53");
    const { asked, next } = zone({});
    await plugin.outcome({ name: TYPED, next });
    assert.equal(asked.length, 1);
  });

  it("warns about a file without search list, and passes everything on", async () => {
    const file = join(folder, "bare");
    writeFileSync(file, "nameserver 192.0.2.1\n");
    const plugin = await start(`autopath ${file}`);
    assert.match(plugin.log.lines.join("\n"), /bare" has no search list/);
    const { asked, next } = zone({});
    await plugin.outcome({ name: TYPED, next });
    assert.equal(asked.length, 1);
  });

  it("does not start without its file", async () => {
    const plugin = PluginTest.of(autopath, `autopath ${join(folder, "none")}`);
    await assert.rejects(plugin.start(), /^SetupError: failed to parse ".*none": no such file or directory/);
  });
});

function sourceOf(path: readonly string[] | string, problem?: string) {
  const source: SearchPathSource = {
    wantSearchPaths: () => problem,
    searchPath: () => (typeof path === "string" ? path : path.map((name) => Name.parse(name))),
  };
  return { name: "source", instance: { searchPathSource: source } };
}

describe("autopath with a plugin", () => {
  const started: { stop(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const plugin of started.splice(0)) await plugin.stop();
  });

  it("follows the path of each query", async () => {
    const plugin = PluginTest.of(autopath, "autopath @source", {
      neighbours: [sourceOf(["a.example.", "b.example."])],
    });
    started.push(plugin);
    await plugin.start();
    const { asked, next } = zone({ "host.b.example.": address });
    const answer = await plugin.ask({ name: "host.a.example.", next });
    assert.deepEqual(asked, ["host.a.example.", "host.b.example."]);
    assert.equal(answer.answer[0], "host.a.example. 7 IN CNAME host.b.example.");
  });

  it("notes why a query passes unchanged", async () => {
    const plugin = PluginTest.of(autopath, "autopath @source", { neighbours: [sourceOf("unknown client")] });
    await plugin.start();
    const notes: string[] = [];
    const query = plugin.query({ name: TYPED });
    query.trace = { note: (text) => void notes.push(text), enter: () => undefined, leave: () => undefined };
    const { next } = zone({});
    await plugin.chain(next)(query);
    assert.deepEqual(notes, ["passed on unchanged: unknown client"]);
  });

  it("does not count a query without side effects", async () => {
    const plugin = PluginTest.of(autopath, "autopath @source", { neighbours: [sourceOf(["a.example."])] });
    await plugin.start();
    const query = plugin.query({ name: "host.a.example." });
    const trace = { note: () => undefined, enter: () => undefined, leave: () => undefined };
    query.trace = { ...trace, leavesNoMark: true };
    const { next } = zone({ "host.": address });
    assert.equal((await plugin.chain(next)(query)).kind, "reply");
    assert.doesNotMatch((await plugin.metrics.expose()).body, /autopath_success_total\{/);
  });

  it("warns if the plugin will never provide a path", async () => {
    const plugin = PluginTest.of(autopath, "autopath @source", { neighbours: [sourceOf("", "it is blind")] });
    await plugin.start();
    assert.match(plugin.log.lines.join("\n"), /autopath does nothing: it is blind/);
  });

  it("passes everything on if the block has no such plugin", async () => {
    const plugin = PluginTest.of(autopath, "autopath @kubernetes");
    await plugin.start();
    assert.match(plugin.log.lines.join("\n"), /there is no 'kubernetes' in this server block/);
    const { asked, next } = zone({});
    await plugin.outcome({ name: TYPED, next });
    assert.deepEqual(asked, [TYPED]);
  });

  it("does not start with a plugin that provides no search paths", async () => {
    const plugin = PluginTest.of(autopath, "autopath @whoami", {
      neighbours: [{ name: "whoami", instance: {} }],
    });
    await assert.rejects(plugin.start(), /^SetupError: whoami does not implement the AutoPather interface/);
  });

  it("uses the path of erratic", async () => {
    const source = PluginTest.of(erratic, "erratic");
    const neighbours = source.instances.map((instance) => ({ name: "erratic", instance }));
    const plugin = PluginTest.of(autopath, "autopath @erratic", { neighbours });
    await plugin.start();
    const { asked, next } = zone({});
    await plugin.outcome({ name: "host.a.example.org.", next });
    assert.deepEqual(asked, ["host.a.example.org.", "host.b.example.org.", "host."]);
  });
});

describe("the directive", () => {
  for (const text of ["autopath", "autopath @"]) {
    it(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(
        () => PluginTest.of(autopath, text),
        (error) =>
          error instanceof ConfigRefused &&
          error.codes.includes("PLUGIN_ARGUMENT_MISSING") &&
          /no resolv-conf specified/.test(error.message),
      );
    });
  }

  it("refuses a block with options", () => {
    assert.throws(() => PluginTest.of(autopath, "autopath /etc/resolv.conf {\n ttl 5\n}"), ConfigRefused);
  });

  it("uses the last of several, and warns about words that are not zones", () => {
    const repeated = PluginTest.of(autopath, "autopath a\nautopath @kubernetes");
    assert.deepEqual(repeated.configs[0]?.path.source, { plugin: "kubernetes" });
    assert.match(repeated.warnings.join(), /only the last counts/);
    const odd = PluginTest.of(autopath, "autopath a..b example.org resolv.conf");
    assert.equal(odd.configs[0]?.path.zones.toString(), "example.org.");
    assert.match(odd.warnings.join(), /'a\.\.b' is not a zone: it is ignored/);
  });
});
