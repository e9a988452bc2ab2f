import assert from "node:assert/strict";
import { test } from "node:test";
import { EncodedSections, Name } from "../../dns/index.ts";
import type { Query } from "../../plugin/index.ts";
import { makeTestQuery, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import { compactSections } from "./compact-sections.ts";
import { CacheEntry } from "./entry.ts";
import { EntryStore, OCTETS_PER_ENTRY } from "./entry-store.ts";
import { CacheHandler } from "./handler.ts";
import cache from "./index.ts";
import { answerTraits, QuestionHasher, TRAIT_CD, TRAIT_DO } from "./question-hash.ts";
import { settingsOf } from "./settings.ts";
import type { Verdict } from "./verdict.ts";

const VERDICT: Verdict = {
  type: "NOERROR",
  ttl: 300,
  storable: true,
  denial: false,
  sameQuestion: true,
  answers: true,
  sound: true,
};

/** Few hashes, so that entries share buckets and meet in them. */
const HASHES = 64;

function entryFor(query: Query, octets = 0): CacheEntry {
  const data = `\\# ${octets} ${"00".repeat(octets)}`;
  const reply = query.reply({ answer: records(`${query.name} 300 IN TYPE65280 ${data}`) });
  return new CacheEntry({ hash: hashOf(query), traits: 0 }, query, reply, VERDICT, 0);
}

function hashOf(query: Query): number {
  return query.name.hash % HASHES;
}

function numbered(count: number): Query[] {
  return Array.from({ length: count }, (_, index) => makeTestQuery({ name: `host-${index}.example.org.` }));
}

function pseudoRandom(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 48271) & 0x7fff_ffff) >>> 0;
    return state / 0x8000_0000;
  };
}

test("what was put is found, until it is removed, whatever shares its bucket", () => {
  const store = new EntryStore(10_000, () => 0);
  const queries = numbered(3000);
  const entries = queries.map((query) => entryFor(query));
  for (const entry of entries) assert.equal(store.put(entry, undefined), 0);
  for (const [index, query] of queries.entries())
    assert.equal(store.find(hashOf(query), 0, query), entries[index]);
  for (const [index, entry] of entries.entries()) if (index % 3 !== 0) store.remove(entry);
  for (const [index, query] of queries.entries())
    assert.equal(store.find(hashOf(query), 0, query), index % 3 === 0 ? entries[index] : undefined);
  assert.equal(store.size, 1000);
  for (const entry of entries) store.remove(entry);
  assert.equal(store.size, 0);
  assert.equal(store.octets, 0);
});

test("an equal hash does not make an equal question", () => {
  const store = new EntryStore(100, () => 0);
  const query = makeTestQuery({ name: "www.example.org." });
  const entry = entryFor(query);
  store.put(entry, undefined);
  const found = (question: QuestionOptions, traits = 0): CacheEntry | undefined =>
    store.find(hashOf(query), traits, makeTestQuery(question));
  assert.equal(found({ name: "WWW.EXAMPLE.org." }), entry);
  assert.equal(found({ name: "www.example.org.", type: "AAAA" }), undefined);
  assert.equal(found({ name: "www.example.org.", class: 3 }), undefined);
  assert.equal(found({ name: "www.example.org." }, TRAIT_DO), undefined);
  assert.equal(found({ name: "wwv.example.org." }), undefined);
  assert.equal(found({ name: "example.org." }), undefined);
  assert.equal(found({ name: "www.example.org.x." }), undefined);
  assert.equal(found({ name: "www.example\\.org." }), undefined);
});

test("an entry that takes the place of another throws nobody out", () => {
  const store = new EntryStore(2, () => 0);
  const [one, two] = numbered(2);
  assert.ok(one !== undefined && two !== undefined);
  const old = entryFor(one);
  store.put(old, undefined);
  store.put(entryFor(two), undefined);
  assert.equal(store.put(entryFor(one), old), 0);
  assert.equal(store.size, 2);
});

test("a full table throws out entries by lot", () => {
  const store = new EntryStore(100, pseudoRandom());
  const queries = numbered(1000);
  let evicted = 0;
  for (const query of queries) evicted += store.put(entryFor(query), undefined);
  assert.equal(evicted, 900);
  assert.equal(store.size, 100);
  const kept = queries.flatMap((query, index) => (store.find(hashOf(query), 0, query) ? [index] : []));
  assert.equal(kept.length, 100);
  assert.equal(kept.at(-1), 999, "the newest is never the one to go");
  // By lot the ages follow a geometric distribution: some survive several times as many insertions as there is room for.
  assert.ok((kept[0] ?? 1000) < 800);
});

test("large answers take the room of several", () => {
  const store = new EntryStore(1024, pseudoRandom());
  let evicted = 0;
  for (const query of numbered(100)) evicted += store.put(entryFor(query, 60_000), undefined);
  assert.ok(store.octets <= 1024 * OCTETS_PER_ENTRY);
  assert.equal(store.size, Math.floor((1024 * OCTETS_PER_ENTRY) / 60_100));
  assert.equal(evicted + store.size, 100);
});

test("dropping a name takes what is below with it, and nothing else", () => {
  const store = new EntryStore(100, () => 0);
  const names = ["a.b.c.", "b.c.", "x.b.c.", "xb.c.", "c.", "b.c.d.", "B.C."];
  const queries = names.map((name, index) => makeTestQuery({ name, type: index === 6 ? "AAAA" : "A" }));
  for (const query of queries) store.put(entryFor(query), undefined);
  assert.equal(store.dropAtOrBelow([Name.parse("B.c."), Name.parse("nothing.")]), 4);
  const left = queries.filter((query) => store.find(hashOf(query), 0, query) !== undefined);
  assert.deepEqual(
    left.map(({ name }) => String(name)),
    ["xb.c.", "c.", "b.c.d."],
  );
});

test("a hundred thousand names keep the cache at its capacity", async () => {
  const running = PluginTest.of(cache, "cache {\n success 5000\n}");
  const [config] = running.configs;
  assert.ok(config !== undefined);
  const handler = new CacheHandler(settingsOf(config), {
    clock: running.clock,
    log: running.log,
    metrics: running.metrics,
    random: { fraction: pseudoRandom(), unpredictable: () => 12345 },
  });
  const sections = makeTestQuery({ name: "host-000000.example.org." }).reply({
    answer: records("host-000000.example.org. 300 IN A 192.0.2.1"),
  }).encoded;
  for (let count = 0; count < 100_000; count++) {
    const query = running.query({ name: `host-${String(count).padStart(6, "0")}.example.org.` });
    await handler.handle(query, (asked) => asked.reply({ encoded: sections }));
  }
  assert.equal(handler.store.success.size, 4864);
  const evictions = running.metrics
    .counter({
      name: "coredns_cache_evictions_total",
      help: "-",
      labels: ["server", "type", "zones", "view"],
    })
    .slot("dns://:53", "success", ".", "");
  assert.equal(evictions.value, 100_000 - 4864);
});

test("the hash ignores case and tells names, types, classes, DO and CD apart", () => {
  const hasher = new QuestionHasher(1, 2);
  const hash = (name: string, type = "A", traits = 0, recordClass = 1): number =>
    hasher.hash(makeTestQuery({ name, type, class: recordClass }), traits);
  assert.equal(hash("www.example.org."), hash("WWW.exAMPLE.Org."));
  const hashes = [
    ...["a.", "aa.", "aaa.", "aaaa.", "aaaaa.", ".", "a.a.", "a.aa."].map((name) => hash(name)),
    hash("a.", "AAAA"),
    hash("a.", "A", TRAIT_DO),
    hash("a.", "A", TRAIT_CD),
    hash("a.", "A", TRAIT_CD | TRAIT_DO),
    hash("a.", "A", 0, 3),
    new QuestionHasher(1, 3).hash(makeTestQuery({ name: "a." }), 0),
    new QuestionHasher(3, 2).hash(makeTestQuery({ name: "a." }), 0),
  ];
  assert.equal(new Set(hashes).size, hashes.length);
  assert.equal(answerTraits(makeTestQuery({ name: "a.", flags: 0x10, edns: { dnssecOk: true } })), 3);
});

test("the hash spreads names that differ in a digit over all buckets", () => {
  const hasher = new QuestionHasher(0x1234_5678, 0x9abc_def0);
  const buckets = new Uint32Array(256);
  const queries = numbered(25_600);
  for (const query of queries) {
    const bucket = hasher.hash(query, 0) & 255;
    buckets[bucket] = (buckets[bucket] ?? 0) + 1;
  }
  // Poisson with a mean of 100: six deviations to each side.
  assert.ok(Math.min(...buckets) > 40 && Math.max(...buckets) < 160, `${Math.min(...buckets)}`);
});

test("a small answer does not hold the large buffer that it came in", () => {
  const query = makeTestQuery({ name: "www.example.org.", type: "MX" });
  const { encoded } = query.reply({
    answer: records("www.example.org. 300 IN MX 10 mail.example.org."),
    authority: records("example.org. 300 IN NS ns.example.org."),
    additional: records("mail.example.org. 300 IN A 192.0.2.1"),
  });
  assert.equal(compactSections(encoded, query.question), encoded);
  const buffer = new Uint8Array(65_535);
  buffer.set(encoded.bytes);
  buffer.set([0, 1, 0, 1, 0, 1, 0, 1], 4);
  const large = EncodedSections.scan(buffer.subarray(0, encoded.end), encoded.end).encoded;
  for (const sections of [large, large.answerOnly()]) {
    const compact = compactSections(sections, query.question);
    assert.equal(compact.bytes.buffer.byteLength, sections.end);
    assert.deepEqual(query.reply({ encoded: compact }).records, query.reply({ encoded: sections }).records);
  }
  const empty = EncodedSections.empty(query.questionEnd);
  assert.equal(compactSections(empty, query.question), empty);
});
