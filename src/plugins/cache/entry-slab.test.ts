import assert from "node:assert/strict";
import { test } from "node:test";
import { EncodedSections, Name } from "../../dns/index.ts";
import { REGION_OCTETS, UNIT_WORDS } from "../../lib/collections/slab/block-memory.ts";
import type { Query } from "../../plugin/index.ts";
import { Head } from "../../plugin/packed/entry-layout.ts";
import { makeTestQuery, type QuestionOptions, records } from "../../plugin/testing.ts";
import { loadPageRelease } from "../../runtime/memory-release.ts";
import { EntrySlab } from "./entry-slab.ts";
import type { EntryContent } from "./entry-writer.ts";
import { makeCache } from "./fixtures/make-cache.ts";
import type { KeptAnswer } from "./kept-answer.ts";
import { answerTraits, QuestionHasher, TRAIT_CD, TRAIT_DO } from "./question-hash.ts";

/** Few hashes, so that entries collide. */
const HASHES = 64;

function slabOf(capacity: number, regions = 8): EntrySlab {
  return new EntrySlab({ capacity, regions }, false, 0x1234_5678);
}

function contentFor(query: Query, octets = 0): EntryContent {
  const data = `\\# ${octets} ${"00".repeat(octets)}`;
  return contentOf(query, `${query.name} 300 IN TYPE65280 ${data}`);
}

function contentOf(query: Query, ...answer: string[]): EntryContent {
  return {
    asked: query,
    sections: query.reply({ answer: records(...answer) }).encoded,
    rcode: 0,
    flags: 0,
    ttl: 300,
    expiresAt: 300_000,
    error: false,
    answers: true,
    wildcard: undefined,
    hits: undefined,
  };
}

function hashOf(query: Query): number {
  return query.name.hash % HASHES;
}

function put(slab: EntrySlab, query: Query, content = contentFor(query)): number {
  return slab.put({ hash: hashOf(query), traits: 0 }, content);
}

function find(slab: EntrySlab, query: Query): number {
  return slab.find(hashOf(query), 0, query);
}

function read(slab: EntrySlab, query: Query): KeptAnswer {
  return slab.read(find(slab, query)) ?? assert.fail();
}

function remove(slab: EntrySlab, query: Query): void {
  assert.ok(slab.removeAnswer(hashOf(query), 0, query));
}

function numbered(count: number, prefix = "host"): Query[] {
  return Array.from({ length: count }, (_, index) =>
    makeTestQuery({ name: `${prefix}-${index}.example.org.` }),
  );
}

test("a stored entry is found until it is removed, whatever shares its hash", () => {
  const slab = slabOf(3000);
  const queries = numbered(1500);
  for (const query of queries) assert.equal(put(slab, query), 0);
  for (const query of queries)
    assert.equal(read(slab, query).sections.ownerAt(0).toString(), `${query.name}`);
  for (const [index, query] of queries.entries()) if (index % 3 !== 0) remove(slab, query);
  for (const [index, query] of queries.entries()) assert.equal(find(slab, query) >= 0, index % 3 === 0);
  assert.equal(slab.size, 500);
  for (const query of queries) remove(slab, query);
  assert.equal(slab.size, 0);
  assert.equal(slab.octets, 0);
});

test("an equal hash does not make an equal question", () => {
  const slab = slabOf(100);
  const query = makeTestQuery({ name: "www.example.org." });
  put(slab, query);
  const found = (question: QuestionOptions, traits = 0): boolean =>
    slab.find(hashOf(query), traits, makeTestQuery(question)) >= 0;
  assert.ok(found({ name: "WWW.EXAMPLE.org." }));
  assert.ok(!found({ name: "www.example.org.", type: "AAAA" }));
  assert.ok(!found({ name: "www.example.org.", class: 3 }));
  assert.ok(!found({ name: "www.example.org." }, TRAIT_DO));
  assert.ok(!found({ name: "wwv.example.org." }));
  assert.ok(!found({ name: "example.org." }));
  assert.ok(!found({ name: "www.example.org.x." }));
  assert.ok(!found({ name: "www.example\\.org." }));
});

test("replacing an entry evicts no other", () => {
  const slab = slabOf(2);
  const [one, two] = numbered(2);
  assert.ok(one !== undefined && two !== undefined);
  put(slab, one);
  put(slab, two);
  assert.equal(put(slab, one), 0);
  assert.equal(put(slab, one, contentFor(one, 500)), 0, "nor does a larger one");
  assert.equal(slab.size, 2);
  assert.equal(read(slab, one).sections.end, one.questionEnd + 12 + 500);
});

test("a mark is void once its entry is replaced or removed", () => {
  const slab = slabOf(10);
  const [query] = numbered(1);
  assert.ok(query !== undefined);
  put(slab, query);
  const first = read(slab, query).held();
  assert.ok(slab.has(first));
  slab.setRetryAt(first, 1000);
  slab.setRefreshing(first, true);
  assert.equal(slab.retryAt(first), 1000);
  put(slab, query);
  const second = read(slab, query).held();
  assert.ok(!slab.has(first) && slab.has(second));
  assert.equal(slab.retryAt(second), Number.NEGATIVE_INFINITY);
  assert.ok(!slab.isRefreshing(second));
  remove(slab, query);
  assert.ok(!slab.has(second));
});

test("a full table keeps used entries and the newest", () => {
  const slab = slabOf(100);
  const popular = numbered(20, "popular");
  for (const query of popular) put(slab, query);
  let evicted = 0;
  for (const query of numbered(2000)) {
    for (const asked of popular) read(slab, asked);
    evicted += put(slab, query);
    assert.ok(find(slab, query) >= 0);
  }
  assert.equal(slab.size, 100);
  assert.equal(evicted, 2000 - 80);
  for (const query of popular) assert.ok(find(slab, query) >= 0);
});

test("large answers evict several entries, but not the used ones", () => {
  const slab = slabOf(1024, 16);
  const popular = numbered(50, "popular");
  for (const query of popular) put(slab, query);
  let evicted = 0;
  for (const query of numbered(200)) {
    for (const asked of popular) read(slab, asked);
    evicted += put(slab, query, contentFor(query, 65_000));
    assert.ok(find(slab, query) >= 0);
  }
  assert.ok(slab.octets <= slab.maxOctets);
  assert.equal(slab.maxOctets, 16 * REGION_OCTETS);
  assert.equal(slab.size + evicted, 250);
  assert.ok(slab.size >= 50 + 14, `${slab.size}`);
  for (const query of popular) assert.ok(find(slab, query) >= 0);
});

test("one answer of 64 KiB of the smallest records fits into the smallest possible memory", () => {
  const slab = slabOf(1024, 1);
  const [query, other] = numbered(2);
  assert.ok(query !== undefined && other !== undefined);
  const bytes = new Uint8Array(65_535);
  bytes.set(query.bytes.subarray(0, query.questionEnd));
  const count = Math.floor((65_535 - query.questionEnd) / 11);
  bytes[6] = count >> 8;
  bytes[7] = count;
  for (let index = 0; index < count; index++) bytes[query.questionEnd + 11 * index + 2] = 1;
  const { encoded } = EncodedSections.scan(bytes, query.questionEnd + 11 * count);
  const neighbour = contentFor(other, 50_000);
  put(slab, other, neighbour);
  assert.equal(put(slab, query, { ...contentFor(query), sections: encoded }), 1);
  const { sections } = read(slab, query);
  assert.equal(sections.count, count);
  assert.deepEqual(
    sections.bytes.subarray(query.questionEnd, encoded.end),
    bytes.subarray(query.questionEnd, encoded.end),
  );
  assert.deepEqual(sections.recordStarts.subarray(0, count + 1), encoded.recordStarts);
  assert.deepEqual(sections.typeOffsets.subarray(0, count), encoded.typeOffsets);
  assert.equal(put(slab, other, neighbour), 1);
});

test("while growth is not allowed, new entries evict old ones although there is room", () => {
  const slab = slabOf(30_000, 64);
  let isTight = true;
  slab.growOnlyWhile(() => !isTight);
  for (const query of numbered(5_000)) put(slab, query, contentFor(query, 200));
  assert.equal(slab.octets <= REGION_OCTETS && slab.octets > 0.9 * REGION_OCTETS, true);
  const [large] = numbered(1);
  assert.ok(large !== undefined);
  put(slab, large, contentFor(large, 60_000));
  assert.equal(read(slab, large).sections.count, 1);
  isTight = false;
  for (const query of numbered(5_000)) put(slab, query, contentFor(query, 200));
  assert.equal(slab.size, 5_000);
});

test("memory full of answers of one size is reusable for another size, repeatedly", () => {
  const slab = slabOf(30_000, 4);
  /** Stores entries, and counts how many of the latest ones are still there. */
  const flood = (octets: number, count: number, prefix: string): number => {
    const queries = numbered(count, prefix);
    for (const query of queries) put(slab, query, contentFor(query, octets));
    assert.ok(slab.octets <= slab.maxOctets);
    return queries.filter((query) => find(slab, query) >= 0).length;
  };
  const most = 4 * REGION_OCTETS;
  for (let round = 0; round < 2; round++) {
    // Two to a region.
    assert.equal(flood(65_000, 30, `large-${round}`), 8);
    // 64 octets of head, 24 of name and 16 of type, class and record before the data.
    const small = flood(20, 6_000, `small-${round}`);
    assert.ok(small * 128 > 0.97 * most, `${small}`);
    const middle = flood(1000, 1_000, `middle-${round}`);
    assert.ok(middle * 1120 > 0.95 * most, `${middle}`);
  }
});

test("an answer takes its octets rounded up to 32", () => {
  const slab = slabOf(2000, 4);
  const queries = numbered(1000, "of-a-deployment-with-a-long-name-in-a-namespace");
  // A head of 64 octets, names of 63 to 65, type and class, a record of 16.
  for (const query of queries) put(slab, query, contentOf(query, `${query.name} 300 IN A 192.0.2.1`));
  assert.equal(slab.size, 1000);
  assert.equal(slab.octets, 1000 * 160);
});

test("answers of all sizes leave little memory between them", () => {
  const slab = slabOf(30_000, 4);
  const popular = numbered(50, "popular");
  for (const query of popular) put(slab, query);
  let state = 1;
  let lost = 0;
  for (const [index, query] of numbered(6_000).entries()) {
    state = Math.imul(state, 1_664_525) + 1_013_904_223;
    const octets = (state >>> 8) % 600;
    put(slab, query, contentFor(query, index % 500 === 0 ? 40_000 : octets));
    if (index % 20 !== 0) continue;
    for (const asked of popular)
      if (find(slab, asked) >= 0) read(slab, asked);
      else {
        lost++;
        put(slab, asked);
      }
  }
  assert.ok(slab.octets > 0.95 * slab.maxOctets, `${slab.octets / slab.maxOctets}`);
  // A dozen large entries replace a hundred small ones, of which some may be popular.
  assert.ok(lost < 30, `${lost}`);
});

test("thousands of types of one name evict each other, not other names", () => {
  const slab = slabOf(1000);
  for (const query of numbered(100)) put(slab, query);
  for (let type = 1; type <= 2000; type++) {
    const query = makeTestQuery({ name: "types.example.org.", type: `TYPE${type}` });
    put(slab, query, contentOf(query, "types.example.org. 300 IN TXT x"));
  }
  assert.ok(slab.size < 100 + 65, `${slab.size}`);
  assert.ok(numbered(100).filter((query) => find(slab, query) >= 0).length > 90);
});

test("a name of 255 octets and 127 labels is cached, and so are thousands that differ in each label", () => {
  const slab = slabOf(1024);
  let evicted = 0;
  const nameOf = (index: number): string =>
    Array.from({ length: 127 }, (_, label) => "abcdefghij"[(index >> (label % 12)) & 1] ?? "a").join(".");
  for (let index = 0; index < 1500; index++) {
    const query = makeTestQuery({ name: `${nameOf(index)}.` });
    evicted += put(slab, query);
    assert.ok(find(slab, query) >= 0);
  }
  assert.equal(slab.size + evicted, 1500);
  assert.ok(slab.size > 100);
});

test("dropping a name drops the names below it, and nothing else", () => {
  const slab = slabOf(100);
  const names = ["a.b.c.", "b.c.", "x.b.c.", "xb.c.", "c.", "b.c.d.", "B.C."];
  const queries = names.map((name, index) => makeTestQuery({ name, type: index === 6 ? "AAAA" : "A" }));
  for (const query of queries) put(slab, query);
  assert.equal(slab.dropAtOrBelow(Name.parse("B.c."), 1000), 4);
  assert.equal(slab.dropAtOrBelow(Name.parse("nothing."), 1000), 0);
  const left = queries.filter((query) => find(slab, query) >= 0);
  assert.deepEqual(
    left.map(({ name }) => String(name)),
    ["xb.c.", "c.", "b.c.d."],
  );
});

test("names are dropped in portions", () => {
  const slab = slabOf(5000, 16);
  for (const query of numbered(4000)) put(slab, query);
  assert.equal(slab.dropAtOrBelow(Name.parse("example.org."), 1500), 1500);
  assert.equal(slab.size, 2500);
  assert.equal(slab.dropAtOrBelow(Name.root, 1500), 1500);
  assert.equal(slab.dropAtOrBelow(Name.parse("org."), 1500), 1000);
  assert.equal(slab.octets, 0);
});

test("thirty thousand names keep the cache at its capacity", async () => {
  const { running, handler } = makeCache("cache {\n success 5000\n}");
  const sections = makeTestQuery({ name: "host-000000.example.org." }).reply({
    answer: records("host-000000.example.org. 300 IN A 192.0.2.1"),
  }).encoded;
  for (let count = 0; count < 30_000; count++) {
    const query = running.query({ name: `host-${String(count).padStart(6, "0")}.example.org.` });
    await handler.handle(query, (asked) => asked.reply({ encoded: sections }));
  }
  assert.equal(handler.store.success.size, 4864);
  assert.ok(handler.store.success.octetsTouched < 2_500_000, `${handler.store.success.octetsTouched}`);
  const evictions = running.metrics
    .counter({
      name: "coredns_cache_evictions_total",
      help: "-",
      labels: ["server", "type", "zones", "view"],
    })
    .slot("dns://:53", "success", ".", "");
  assert.equal(evictions.value, 30_000 - 4864);
});

test("dropped names are hidden at once, however many turns of the event loop the removal takes", async () => {
  const { running, handler } = makeCache("cache {\n success 20000\n}");
  const ask = (name: string) => {
    let asked = 0;
    void handler.handle(running.query({ name }), (query) => {
      asked++;
      return query.reply({ answer: records(`${query.name} 300 IN A 192.0.2.1`) });
    });
    return asked > 0 ? "asked" : "kept";
  };
  for (let index = 0; index < 12_000; index++) assert.equal(ask(`host-${index}.example.org.`), "asked");
  assert.equal(ask("other.example."), "asked");
  const dropped = handler.drop([Name.parse("example.org.")]);
  assert.ok(dropped > 0 && dropped < 12_000);
  assert.equal(handler.drop([Name.parse("other.example.")]), 0, "waits for its turn");
  assert.equal(ask("other.example."), "asked");
  assert.equal(ask("host-0.example.org."), "asked");
  assert.equal(ask("host-11999.example.org."), "asked");
  assert.equal(ask("host-11999.example.org."), "kept");
  await running.clock.settle(10);
  assert.ok(handler.store.success.size <= 3);
  await handler.stop();
  assert.equal(running.clock.pendingTimers, 0);
});

test("the hash ignores case and distinguishes names, types, classes, DO and CD", () => {
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
  assert.equal(answerTraits(makeTestQuery({ name: "a.", flags: 0x10, edns: { dnssecOk: true } })), 7);
  assert.equal(answerTraits(makeTestQuery({ name: "a.", flags: 0x100 })), 0);
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

test("a released slab finds nothing and stores nothing", async (context) => {
  const release = await loadPageRelease();
  if (release === undefined) {
    context.skip("no madvise here");
    return;
  }
  const slab = slabOf(1000);
  const queries = numbered(300);
  for (const query of queries) put(slab, query);
  slab.release(release);
  for (const query of queries) {
    assert.equal(find(slab, query), -1);
    assert.equal(put(slab, query), -1);
  }
  assert.equal(slab.size, 0);
  assert.equal(slab.dropAtOrBelow(Name.root, 10), -1);
});

test("the serial of a former entry is not found in its place, whatever is stored there", () => {
  const slab = new EntrySlab({ capacity: 3000, regions: 8 }, false, 0x9abc_def0);
  const queries = numbered(400);
  for (const query of queries) put(slab, query);
  const gone: { readonly words: Int32Array; readonly place: number; readonly serial: number }[] = [];
  const check = (): void => {
    for (const { words, place, serial } of gone) assert.notEqual(words[place], serial);
  };
  const removeKept = (query: Query): void => {
    const { words, unit, serial } = read(slab, query);
    gone.push({ words, place: unit * UNIT_WORDS + Head.SERIAL, serial });
    remove(slab, query);
    check();
  };
  // Free blocks are linked by their units. A block that was just freed gets a link to the next one: a number equal to
  // its entry's serial.
  for (const query of queries.slice(11).filter((_, index) => index % 3 === 0)) {
    const before = queries[find(slab, query)];
    if (before === undefined || before === query || find(slab, before) < 0) continue;
    removeKept(before);
    removeKept(query);
  }
  assert.ok(gone.length > 20);
  // Larger entries then overwrite them.
  for (const query of numbered(60, "large")) put(slab, query, contentFor(query, 900));
  check();
});
