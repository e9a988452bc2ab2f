/**
 * Compares the slab with a plain `Map`. `PORTOLAN_SLAB_STEPS=5000000 node --test
 * src/plugins/cache/slab-model.test.ts` is the long form.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Name } from "../../dns/index.ts";
import type { Query } from "../../plugin/index.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import { EntrySlab } from "./entry-slab.ts";
import type { EntryContent } from "./entry-writer.ts";
import { mention } from "./fixtures/mention.ts";

const STEPS = Number(process.env.PORTOLAN_SLAB_STEPS ?? 6_000);
/** Steps with one slab. */
const ROUND = 3_000;

/** xorshift32: the same seed gives the same steps, and failures print it. */
class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 1;
  }

  below(limit: number): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % limit;
  }
}

interface Known {
  readonly query: Query;
  readonly traits: number;
  readonly content: EntryContent;
  /** Names that the answer depends on besides the question's. */
  readonly targets: readonly Name[];
}

const NAMES = [
  ".",
  "org.",
  "www.example.org.",
  "example.org.",
  "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.example.org.",
  "b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.example.org.",
  "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.",
  `${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.${"w".repeat(61)}.`,
  ...Array.from({ length: 40 }, (_, index) => `host-${index}.ns-${index % 5}.svc.cluster.local.`),
  ...Array.from({ length: 5 }, (_, index) => `ns-${index}.svc.cluster.local.`),
];
const QUESTIONS = NAMES.flatMap((name) => ["A", "AAAA", "TXT"].map((type) => makeTestQuery({ name, type })));
const DROPPED = [
  ...NAMES,
  "svc.cluster.local.",
  "cluster.local.",
  "z.example.org.",
  "x.y.z.example.org.",
  "nowhere.",
].map((name) => Name.parse(name));
const ADDRESSES = Array.from({ length: 40 }, (_, index) => `192.0.2.${index}`);

test(`a slab behaves like a map, over ${STEPS} steps`, () => {
  for (let seed = 1; seed * ROUND <= STEPS; seed++) play(seed);
});

function play(seed: number): void {
  const dice = new Dice(Math.imul(seed, 0x9e37_79b1));
  const capacity = 20 + dice.below(150);
  const regions = 1 + dice.below(3);
  const slab = new EntrySlab({ capacity, regions }, false, seed);
  const model = new Map<string, Known>();
  // Few hashes, so that questions share them.
  const hashes = 1 + dice.below(40);
  for (let step = 0; step < ROUND; step++) {
    const query = QUESTIONS[dice.below(QUESTIONS.length)] ?? assert.fail();
    const traits = dice.below(3);
    const key = `${query.name} ${query.type} ${traits}`;
    const hash = (query.name.hash ^ traits) % hashes;
    const unit = slab.find(hash, traits, query);
    assert.equal(unit >= 0, model.has(key), `seed ${seed}, step ${step}: ${key}`);
    const action = dice.below(100);
    if (action < 50) {
      const targets = dice.below(2) === 0 ? [] : NAMES.slice(0, dice.below(4)).map(() => nameBy(dice));
      const content = { ...contentFor(query, dice), mentioned: mention(query, targets.map(String)) };
      const evicted = slab.put({ hash, traits }, content);
      model.set(key, { query, traits, content, targets });
      if (evicted > 0) forgetEvicted(slab, model, hashes, evicted);
      assert.ok(model.has(key), "what was just put is there");
    } else if (action < 80) {
      const known = model.get(key);
      if (known !== undefined) checkRead(slab, unit, known);
    } else if (action < 97) {
      assert.ok(slab.removeAnswer(hash, traits, query));
      model.delete(key);
    } else {
      const name = DROPPED[dice.below(DROPPED.length)] ?? assert.fail();
      const covered = [...model].filter(([, known]) =>
        [known.query.name, ...known.targets].some((one) => one.isAtOrBelow(name)),
      );
      for (const [outdated] of covered) model.delete(outdated);
      assert.equal(slab.dropAtOrBelow(name, 100_000), covered.length, `seed ${seed}, step ${step}: ${name}`);
    }
    assert.equal(slab.size, model.size);
    assert.ok(slab.size <= capacity && slab.octets <= slab.maxOctets);
  }
  for (const { query, traits } of model.values())
    slab.removeAnswer((query.name.hash ^ traits) % hashes, traits, query);
  assert.deepEqual([slab.size, slab.octets], [0, 0]);
}

function nameBy(dice: Dice): Name {
  return Name.parse(NAMES[dice.below(NAMES.length)] ?? assert.fail());
}

function forgetEvicted(slab: EntrySlab, model: Map<string, Known>, hashes: number, evicted: number): void {
  let gone = 0;
  for (const [key, { query, traits }] of model) {
    if (slab.find((query.name.hash ^ traits) % hashes, traits, query) >= 0) continue;
    model.delete(key);
    gone++;
  }
  assert.equal(gone, evicted);
}

function contentFor(query: Query, dice: Dice): EntryContent {
  const large = dice.below(40) === 0 ? dice.below(60_000) : dice.below(4) === 0 ? dice.below(600) : 0;
  const addresses = ADDRESSES.slice(0, dice.below(dice.below(5) === 0 ? ADDRESSES.length : 4));
  const hits =
    dice.below(3) === 0 ? { count: dice.below(70_000) & 0xffff, lastAt: dice.below(1000) } : undefined;
  return {
    asked: query,
    sections: query.reply({
      answer: records(...addresses.map((address) => `${query.name} 300 IN A ${address}`)),
      authority: dice.below(3) === 0 ? records("example.org. 300 IN NS ns.example.org.") : [],
      additional: large > 0 ? records(`. 300 IN TYPE65280 \\# ${large} ${"ab".repeat(large)}`) : [],
    }).encoded,
    rcode: dice.below(4096),
    flags: dice.below(2) * 0x80,
    ttl: dice.below(0x8000_0000),
    expiresAt: dice.below(1_000_000) / 7,
    error: dice.below(2) === 0,
    answers: dice.below(2) === 0,
    wildcard: dice.below(4) === 0 ? new TextEncoder().encode(`*.${query.name}`) : undefined,
    hits,
  };
}

function checkRead(slab: EntrySlab, unit: number, { traits, content }: Known): void {
  const kept = slab.read(unit) ?? assert.fail();
  const { rcode, flags, ttl, expiresAt, error, answers, wildcard, hits, sections } = content;
  assert.deepEqual(
    [kept.traits, kept.rcode, kept.flags, kept.ttl, kept.expiresAt, kept.error, kept.answers],
    [traits, rcode, flags, ttl, expiresAt, error, answers],
  );
  assert.equal(kept.wildcard, wildcard === undefined ? undefined : new TextDecoder().decode(wildcard));
  const counted = slab.hitsOf(kept);
  assert.equal(counted?.count, hits?.count);
  if (hits !== undefined && counted !== undefined) assert.ok(Math.abs(counted.lastAt - hits.lastAt) <= 1);
  const copy = kept.sections;
  const count = copy.count;
  assert.deepEqual(
    [copy.start, copy.end, copy.answerCount, copy.authorityCount, copy.additionalCount, copy.firstTypeOffset],
    [
      sections.start,
      sections.end,
      sections.answerCount,
      sections.authorityCount,
      sections.additionalCount,
      sections.firstTypeOffset,
    ],
  );
  assert.ok(
    Buffer.compare(
      copy.bytes.subarray(copy.start, copy.end),
      sections.bytes.subarray(copy.start, copy.end),
    ) === 0,
  );
  assert.deepEqual(copy.recordStarts.subarray(0, count + 1), sections.recordStarts);
  assert.deepEqual(copy.typeOffsets.subarray(0, count), sections.typeOffsets);
  assert.equal(copy.runCount, sections.runCount);
  assert.deepEqual(copy.runTable.subarray(0, 4 * copy.runCount), sections.runTable);
  if (count > 0 && count < 8) assert.deepEqual(copy.decode(), sections.decode());
  copy.lender?.takeBack();
}
