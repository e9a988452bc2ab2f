/** Answers that are given again, beside the plugin that would have given them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { A, CNAME, decodeMessage, encodeMessage, makeQuery, Name, RecordType } from "../../dns/index.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { FakeClock, type Timer } from "../../lib/time/clock.ts";
import { afterwards } from "../../plugin/chain/handler.ts";
import type { PluginInstance } from "../../plugin/contract/plugin-instance.ts";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";
import type { Outcome } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import type {
  AnswerBasis,
  AnswerSource,
  AnswerWitness,
  RepeatedQuery,
  Repetition,
} from "../../plugin/query/repetition.ts";
import { QueryReader } from "../../plugin/stream/query-reader.ts";
import { makeRingBuffer, QueryRing } from "../../plugin/stream/query-ring.ts";
import type { ReplyPort } from "../../transports/transport.ts";
import { buildQueryChain, witnessesOf } from "./chain.ts";
import { DnsListener } from "./dns-listener.ts";
import { InFlight } from "./in-flight.ts";
import { RepeatRoom } from "./repeat-room.ts";
import { RouteTable } from "./route-table.ts";

/** `PORTOLAN_REPEAT_STEPS=5000000 node --test …` is the long form. */
const STEPS = Number(process.env.PORTOLAN_REPEAT_STEPS ?? 20_000);
const TTL = 5;

/** The word at which the message of a {@link SlotPort} begins. */
const MESSAGE_AT = 100;
const CLIENT = new Int32Array(4);

/** A slot of a batch: the message by the word, garbage around it. */
class SlotPort implements ReplyPort {
  readonly client: FixedEndpoint;
  readonly local = new FixedEndpoint("192.0.2.2", 53, Uint8Array.of(192, 0, 2, 2));
  readonly words = new Int32Array(1024);
  readonly octets = new Uint8Array(this.words.buffer, 4 * MESSAGE_AT, 2048);
  readonly #out = new Uint8Array(4096);
  reply: Uint8Array | undefined;

  constructor(address: string, octets: readonly number[]) {
    this.client = new FixedEndpoint(address, 4242, Uint8Array.from(octets));
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(): Uint8Array {
    return this.#out;
  }

  send(length: number): void {
    this.reply = this.buffer().slice(0, length);
  }

  drop(): void {
    this.reply = undefined;
  }
}

/** A plugin whose answers rest on a number for each name and on the time, and that counts what it has answered. */
class Source implements PluginInstance, AnswerSource, AnswerBasis {
  readonly numbers = new Int32Array(64);
  readonly source = this;
  readonly since = new Float64Array(64);
  epoch = 0;
  until = 0;
  place = 0;
  value = 0;
  asked = 0;
  again = 0;
  /** How often each name's answer was given again, as it was told at once. */
  readonly givenAt = new Int32Array(64);
  /** Whether answers say what they rest on. */
  hasBasis = true;
  readonly #clock: FakeClock;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  /** What it says of a name now. */
  facts(index: number): { readonly address: string; readonly ttl: number } {
    const elapsed = this.#clock.now() - (this.since[index] ?? 0);
    const ttl = Math.max(0, Math.ceil(TTL - elapsed / 1000));
    return { address: `192.${this.epoch & 0xff}.${index}.${(this.numbers[index] ?? 0) & 0xff}`, ttl };
  }

  /** The same answer, for as long as at first. */
  renew(index: number): void {
    this.since[index] = this.#clock.now();
    this.numbers[index] = (this.numbers[index] ?? 0) + 1;
  }

  readonly handle = (query: Query) => {
    this.asked++;
    const index = Number(query.name.labelText(0).slice(1));
    const { address, ttl } = this.facts(index);
    const reply = query.reply({ answer: [A.create(query.name, ttl, { address })] });
    if (!this.hasBasis) return reply;
    this.until = ttl === 0 ? 0 : (this.since[index] ?? 0) + (TTL - ttl + 1) * 1000;
    this.place = index;
    this.value = this.numbers[index] ?? 0;
    reply.basis = this;
    return reply;
  };

  given(place: number): void {
    this.givenAt[place] = (this.givenAt[place] ?? 0) + 1;
  }

  repeated({ times, plugin, rcode }: Repetition): void {
    assert.deepEqual([plugin, rcode], ["source", 0]);
    this.again += times;
  }
}

/** Counts as `prometheus` does: by name, client family, and size of query and reply. */
class Counting implements PluginInstance, AnswerWitness {
  readonly seen = new Map<string, number>();
  readonly times: number[] = [];
  readonly witness: AnswerWitness = this;

  readonly handle = afterwards((outcome, query) => {
    if (outcome.kind === "reply") this.#add(query, outcome.size, 1);
    return outcome;
  });

  repeated({ query, size, times }: Repetition): void {
    this.#add(query, size, times);
  }

  answeredAt(receivedAt: number): void {
    this.times.push(receivedAt);
  }

  #add(query: RepeatedQuery, size: number, times: number): void {
    const name = Name.fromCheckedWire(query.bytes.slice(12, query.nameEnd));
    const key = `${name} ${query.client.family} ${query.length} ${size} ${query.hasEdns}`;
    this.seen.set(key, (this.seen.get(key) ?? 0) + times);
  }
}

function listen(
  clock: FakeClock,
  plugins: readonly [name: string, instance: PluginInstance][],
  { ring, room }: { readonly ring?: QueryRing; readonly room?: RepeatRoom } = {},
): DnsListener {
  const slot = () => new MetricsRegistry().counter({ name: "test_total", help: "Test.", labels: [] }).slot();
  const placed = plugins.map(([name, instance]) => ({ name, instance }));
  const chain = buildQueryChain(placed, (_plugin, error) => assert.fail(error));
  const witnesses = witnessesOf(placed);
  const routes = new RouteTable([{ zone: Name.root, chain, filters: [], metadata: undefined, witnesses }]);
  return new DnsListener({
    label: "dns://:53",
    service: { routes, allClasses: false, observer: undefined, inFlight: new InFlight() },
    clock,
    counters: { shed: slot(), rejected: slot(), irregular: slot(), ignored: slot() },
    onError: (error) => assert.fail(String(error)),
    stream: { ring },
    seed: 7,
    ...(room && { repeatRoom: room }),
  });
}

interface Asker {
  readonly ask: (
    name: string,
    options?: { readonly edns?: boolean; readonly ipv6?: boolean },
  ) => ReturnType<typeof decodeMessage>;
}

function asker(listener: DnsListener): Asker {
  const receiver = listener.receiver("udp");
  const ports = [
    new SlotPort("192.0.2.1", [192, 0, 2, 1]),
    new SlotPort("2001:db8::1", new Array<number>(16).fill(1)),
  ];
  let id = 0;
  return {
    ask: (name, { edns = false, ipv6 = false } = {}) => {
      const port = ports[ipv6 ? 1 : 0];
      assert.ok(port);
      id = (id + 7919) & 0xffff;
      const query = makeQuery({ name: Name.parse(name), type: RecordType.A }, { id });
      const octets = encodeMessage(
        edns ? { ...query, edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [] } } : query,
      );
      port.octets.fill(0xa5);
      port.octets.set(octets);
      port.reply = undefined;
      const size =
        receiver.repeat?.(port.words, MESSAGE_AT, octets.length, ipv6 ? 6 : 4, false, CLIENT, 0) ?? 0;
      if (size > 0) port.reply = port.octets.slice(0, size);
      else receiver.receive(port.octets, octets.length, port, true);
      assert.ok(port.reply, `no answer to ${name}`);
      const reply = decodeMessage(port.reply);
      assert.equal(reply.id, id);
      assert.equal(reply.questions[0]?.name.toString(), name);
      return reply;
    },
  };
}

function addressAndTtl(reply: ReturnType<typeof decodeMessage>): unknown {
  return reply.answer.map(({ ttl, data }) => [data, ttl]);
}

function dice(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % limit;
  };
}

test("what is given again is what the plugin would say, and everybody hears of it", () => {
  for (const seed of [1, 2, 3]) {
    const clock = new FakeClock({ now: 10_000 });
    const source = new Source(clock);
    const counting = new Counting();
    const listener = listen(clock, [
      ["counting", counting],
      ["source", source],
    ]);
    const { ask } = asker(listener);
    const expected = new Map<string, number>();
    const roll = dice(seed);
    let queries = 0;
    for (let step = 0; step < STEPS / 3; step++) {
      const index = roll(roll(8) === 0 ? 40 : 3);
      const what = roll(100);
      if (what === 0) source.numbers[index] = (source.numbers[index] ?? 0) + 1;
      else if (what === 1) source.epoch++;
      else if (what === 2) source.renew(index);
      else if (what < 4) clock.advance(roll(300));
      else {
        // Spelling, EDNS and length make other queries.
        const name = `${roll(8) === 0 ? "N" : "n"}${index}.${"x".repeat(index + 1)}.example.`;
        const [edns, ipv6] = [roll(4) === 0, roll(5) === 0];
        const reply = ask(name, { edns, ipv6 });
        const { address, ttl } = source.facts(index);
        assert.deepEqual(addressAndTtl(reply), [[{ address }, ttl]], `seed ${seed}, step ${step}`);
        assert.equal(reply.edns !== undefined, edns);
        queries++;
        const size = encodeMessage(reply).length;
        const length = 12 + Name.parse(name).wire.length + 4 + (edns ? 11 : 0);
        const key = `${name} ${ipv6 ? 6 : 4} ${length} ${size} ${edns}`;
        expected.set(key, (expected.get(key) ?? 0) + 1);
      }
    }
    listener.countRepeated();
    assert.equal(source.asked + source.again, queries);
    assert.equal(counting.times.length, source.again);
    const marked = source.givenAt.reduce((sum, times) => sum + times, 0);
    assert.ok(
      marked >= source.again / 8 && marked < source.again,
      `${marked} of ${source.again} were marked`,
    );
    assert.ok(source.again > queries / 5, `${source.again} of ${queries} were given again`);
    assert.deepEqual(counting.seen, expected);
  }
});

test("nothing is given again for longer than a second, and plugins hear of it within one", () => {
  const clock = new FakeClock({ now: 10_000 });
  const source = new Source(clock);
  source.since[1] = 10_000;
  const { ask } = asker(listen(clock, [["source", source]]));
  for (let time = 0; time < 4; time++) ask("n1.example.");
  assert.deepEqual([source.asked, source.again], [2, 0]);
  clock.advance(999);
  ask("n1.example.");
  assert.equal(source.asked, 2);
  clock.advance(1);
  assert.equal(source.again, 3);
  ask("n1.example.");
  assert.equal(source.asked, 3);
});

const OTHERS: readonly { readonly title: string; readonly before?: [string, PluginInstance] }[] = [
  { title: "a plugin that does not say what it rests on" },
  {
    title: "a plugin behind one that has to see each answer",
    before: ["seer", { handle: afterwards((outcome) => outcome) }],
  },
  {
    title: "a plugin behind one that may do anything",
    before: ["other", { handle: (query, next) => next(query) }],
  },
];

for (const { title, before } of OTHERS) {
  test(`nothing is given again of ${title}`, () => {
    const clock = new FakeClock({ now: 10_000 });
    const source = new Source(clock);
    source.since[1] = 10_000;
    source.hasBasis = before !== undefined;
    const { ask } = asker(listen(clock, [...(before === undefined ? [] : [before]), ["source", source]]));
    for (let time = 0; time < 10; time++) ask("n1.example.");
    assert.equal(source.asked, 10);
  });
}

test("addresses change places each time, and every order is as likely", () => {
  const clock = new FakeClock({ now: 10_000 });
  const addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
  const source = new Source(clock);
  let seed = 1;
  const several: PluginInstance = {
    handle: (query) => {
      source.asked++;
      source.until = Number.POSITIVE_INFINITY;
      const alias = Name.parse(`alias.${query.name}`);
      const reply = query.reply({
        answer: [
          CNAME.create(query.name, 5, { target: alias }),
          ...addresses.map((address) => A.create(alias, 5, { address })),
        ],
      });
      reply.basis = source;
      return reply;
    },
  };
  const shuffle = (outcome: Outcome): Outcome => {
    if (outcome.kind === "reply") outcome.shuffle = seed++;
    return outcome;
  };
  const shuffling = afterwards(shuffle, shuffle, { repeatable: true });
  const { ask } = asker(
    listen(clock, [
      ["loadbalance", { handle: shuffling }],
      ["source", several],
    ]),
  );
  const orders = new Map<string, number>();
  for (let time = 0; time < 6_000; time++) {
    const reply = ask("many.example.");
    const found = reply.answer.filter((record) => A.is(record)).map(({ data }) => data.address);
    assert.deepEqual([...found].sort(), addresses);
    assert.equal(reply.answer.length, 4);
    orders.set(found.join(), (orders.get(found.join()) ?? 0) + 1);
  }
  assert.equal(source.asked, 2);
  assert.equal(orders.size, 6);
  // A thousand each, give or take five standard deviations.
  for (const [order, times] of orders)
    assert.ok(Math.abs(times - 1_000) < 150, `${order} came ${times} times`);
});

test("another configuration begins anew, and the one before has been told", () => {
  const clock = new FakeClock({ now: 10_000 });
  const [old, young] = [new Source(clock), new Source(clock)];
  for (const source of [old, young]) source.since[1] = 10_000;
  const listener = listen(clock, [["source", old]]);
  const { ask } = asker(listener);
  for (let time = 0; time < 5; time++) ask("n1.example.");
  listener.service = listen(clock, [["source", young]]).service;
  assert.deepEqual([old.asked, old.again], [2, 3]);
  young.epoch = 9;
  assert.deepEqual(addressAndTtl(ask("n1.example.")), [[{ address: "192.9.1.0" }, TTL]]);
});

test("a strange flood makes others forgotten, and nothing wrong", () => {
  const clock = new FakeClock({ now: 10_000 });
  const source = new Source(clock);
  source.since.fill(10_000);
  const { ask } = asker(listen(clock, [["source", source]]));
  for (let index = 0; index < 20_000; index++) {
    const name = `n${index % 64}.${index % 9_000}.example.`;
    const { address, ttl } = source.facts(index % 64);
    assert.deepEqual(addressAndTtl(ask(name)), [[{ address }, ttl]]);
  }
});

test("there is room for few listeners, and one that closes makes room for another", () => {
  const clock = new FakeClock({ now: 10_000 });
  const room = new RepeatRoom();
  const started = Array.from({ length: 10 }, () => {
    const source = new Source(clock);
    source.since[1] = 10_000;
    const listener = listen(clock, [["source", source]], { room });
    return { source, listener, ask: asker(listener).ask };
  });
  const again = (): number[] =>
    started.map(({ source, listener, ask }) => {
      const before = source.again;
      for (let time = 0; time < 5; time++) ask("n1.example.");
      listener.countRepeated();
      return source.again - before;
    });
  assert.deepEqual(again(), [3, 3, 3, 3, 3, 3, 3, 3, 0, 0]);
  const { octets } = room;
  assert.ok(octets < 11 * 1024 * 1024);
  started[2]?.listener.retire();
  assert.ok(room.octets < octets);
  assert.deepEqual(again(), [5, 5, 0, 5, 5, 5, 5, 5, 3, 0]);
  assert.equal(room.octets, octets);
});

test("plugins hear of many answers in several turns", () => {
  const delays: number[] = [];
  class SeenClock extends FakeClock {
    override after(delay: number, callback: () => void): Timer {
      delays.push(delay);
      return super.after(delay, callback);
    }
  }
  const clock = new SeenClock({ now: 10_000 });
  const source = new Source(clock);
  source.since.fill(10_000);
  const { ask } = asker(listen(clock, [["source", source]]));
  for (let time = 0; time < 3; time++) for (let index = 0; index < 600; index++) ask(`n1.${index}.example.`);
  clock.advance(1_000);
  assert.equal(source.again, 3 * 600 - source.asked);
  // 256 in each.
  assert.deepEqual(delays, [1_000, 0, 0]);
});

test("who follows queries sees as many as there were", () => {
  const clock = new FakeClock({ now: 10_000 });
  const source = new Source(clock);
  source.since[1] = 10_000;
  const buffer = makeRingBuffer(1 << 20);
  const ring = new QueryRing(buffer, clock);
  const reader = new QueryReader(buffer);
  reader.wantedRate = 100;
  const listener = listen(clock, [["source", source]], { ring });
  const { ask } = asker(listener);
  let weights = 0;
  for (let second = 0; second < 3; second++) {
    for (let time = 0; time < 2_000; time++) {
      ask("n1.example.");
      if (time % 4 === 0) clock.advance(1);
    }
    clock.advance(500);
    reader.read((query) => {
      assert.equal(query.plugin, "source");
      weights += query.weight;
    }, 100_000);
  }
  listener.countRepeated();
  assert.equal(reader.finished, 6_000);
  assert.ok(source.again > 4_000, `${source.again} given again`);
  assert.ok(weights > 5_500 && weights <= 6_000, `entries stand for ${weights}`);
});
