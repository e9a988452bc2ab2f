/** Answers of many messages, seals on the last octets, and what becomes of replies to derived queries: the wide ends of the contract. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodeMessage } from "../../dns/message.ts";
import { Name } from "../../dns/name.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import type { Handler } from "../../plugin/chain/handler.ts";
import type { Endpoint } from "../../plugin/message/endpoint.ts";
import { FixedEndpoint } from "../../plugin/message/endpoint.ts";
import { ReplyStream } from "../../plugin/query/outcome.ts";
import type { Query } from "../../plugin/query/query.ts";
import { makeTestQuery, records } from "../../plugin/testing.ts";
import type { PartPort, ReplyPort } from "../../transports/transport.ts";
import { buildChain } from "./chain.ts";
import { firstReply, sendStream } from "./reply-stream.ts";
import { writeReply } from "./reply-writer.ts";
import { StreamTurns } from "./stream-turns.ts";

const SOMEWHERE: Endpoint = new FixedEndpoint("192.0.2.1", 53, Uint8Array.of(192, 0, 2, 1));

/** Keeps what is sent; takes `room` messages before it has to be drained. */
class KeepingPort implements ReplyPort, PartPort {
  readonly client = SOMEWHERE;
  readonly local = SOMEWHERE;
  readonly sent: Uint8Array[] = [];
  readonly parts: PartPort | undefined;
  isOpen = true;
  aborted = false;
  settled = 0;
  drains = 0;
  room: number;
  #buffer = new Uint8Array(0);

  constructor(options: { readonly takesParts: boolean; readonly room?: number }) {
    this.parts = options.takesParts ? this : undefined;
    this.room = options.room ?? 1_000;
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(size: number): Uint8Array {
    this.#buffer = new Uint8Array(size);
    return this.#buffer;
  }

  send(length: number): void {
    this.settled++;
    this.sent.push(this.#buffer.slice(0, length));
  }

  sendPart(length: number): boolean {
    assert.ok(this.room > 0, "sent to a client that is behind");
    this.room--;
    this.sent.push(this.#buffer.slice(0, length));
    return this.room > 0;
  }

  async drained(): Promise<void> {
    this.drains++;
    this.room = 2;
  }

  drop(): void {
    this.settled++;
  }

  abort(): void {
    this.aborted = true;
    this.isOpen = false;
  }
}

interface Maker {
  readonly stream: ReplyStream;
  made: number;
  ended: boolean;
}

function streamOf(query: Query, count: number, failsAt = Number.POSITIVE_INFINITY): Maker {
  const maker = { made: 0, ended: false };
  function* parts() {
    try {
      for (let n = 0; n < count; n++) {
        if (n === failsAt) throw new RangeError("as asked");
        maker.made++;
        yield query.reply({ answer: records(`a${n}.example. 5 IN A 192.0.2.${n}`) });
      }
    } finally {
      maker.ended = true;
    }
  }
  return Object.assign(maker, { stream: new ReplyStream(parts()) });
}

const shown = (record: ResourceRecord): string => formatRecord(record).replaceAll("\t", " ");

const answersOf = (port: KeepingPort): string[] =>
  port.sent.flatMap((octets) => decodeMessage(octets).answer.map(shown));

describe("an answer of many messages", () => {
  const query = makeTestQuery({ name: "example.", type: "AXFR", transport: "tcp" });

  test("is sent in order, as fast as the client takes it, and made no faster", async () => {
    const port = new KeepingPort({ takesParts: true, room: 2 });
    const maker = streamOf(query, 7);
    let behind = 0;
    const drained = port.drained.bind(port);
    port.drained = async () => {
      behind = Math.max(behind, maker.made - port.sent.length);
      await drained();
    };
    assert.equal(await sendStream(query, maker.stream, port, new StreamTurns(new SystemClock())), undefined);
    assert.deepEqual(
      answersOf(port),
      Array.from({ length: 7 }, (_, n) => `a${n}.example. 5 IN A 192.0.2.${n}`),
    );
    assert.deepEqual([port.settled, port.drains, behind, maker.ended], [1, 3, 0, true]);
  });

  test("begins in the turn of its query: what it sends might change before it is seen to be read", async () => {
    const maker = streamOf(query, 3);
    const sending = sendStream(
      query,
      maker.stream,
      new KeepingPort({ takesParts: true }),
      new StreamTurns(new SystemClock()),
    );
    assert.equal(maker.made, 1);
    assert.equal(await sending, undefined);
  });

  test("ends when the client goes", async () => {
    const port = new KeepingPort({ takesParts: true });
    const maker = streamOf(query, 1_000_000);
    const sendPart = port.sendPart.bind(port);
    port.sendPart = (length) => {
      port.isOpen = port.sent.length < 3;
      return sendPart(length);
    };
    assert.equal(await sendStream(query, maker.stream, port, new StreamTurns(new SystemClock())), undefined);
    assert.ok(maker.made < 7, `${maker.made} were made`);
    assert.deepEqual([port.settled, maker.ended], [1, true]);
  });

  test("that cannot be finished costs the connection, so that no client takes a part for the whole", async () => {
    const port = new KeepingPort({ takesParts: true });
    const maker = streamOf(query, 5, 2);
    assert.ok(
      (await sendStream(query, maker.stream, port, new StreamTurns(new SystemClock()))) instanceof RangeError,
    );
    assert.deepEqual([port.sent.length, port.aborted, port.settled], [2, true, 1]);
  });

  for (const [count, truncated] of [
    [1, false],
    [3, true],
  ] as const) {
    test(`is cut to its first where only one can be sent: TC of ${count} is ${truncated}`, async () => {
      const port = new KeepingPort({ takesParts: false });
      const maker = streamOf(query, count);
      assert.equal(
        await sendStream(query, maker.stream, port, new StreamTurns(new SystemClock())),
        undefined,
      );
      assert.deepEqual([answersOf(port).length, port.settled, maker.ended], [1, 1, true]);
      assert.equal((decodeMessage(port.sent[0] ?? new Uint8Array(0)).flags & Flag.TC) !== 0, truncated);
    });
  }

  test("is shown by its first message", async () => {
    const maker = streamOf(query, 3);
    const reply = await firstReply(maker.stream);
    assert.deepEqual(reply?.answer.map(shown), ["a0.example. 5 IN A 192.0.2.0"]);
    assert.ok(maker.ended);
  });
});

describe("a seal", () => {
  test("sees the octets that are sent, the first that was added last, and they fit the client's limit", () => {
    const query = makeTestQuery({ name: "a.example.", edns: { udpSize: 512 } });
    const seen: number[] = [];
    query.addSeal({
      room: 0,
      seal: (_, length) => {
        seen.push(length);
        return length;
      },
    });
    query.addSeal({
      room: 100,
      seal: (bytes, length) => {
        assert.ok(bytes.length >= length + 100);
        seen.push(length);
        return length + 100;
      },
    });
    const many = records(...Array.from({ length: 60 }, (_, n) => `a.example. 5 IN A 192.0.2.${n}`));
    const port = new KeepingPort({ takesParts: false });
    const length = writeReply(query, query.reply({ answer: many }), port);
    assert.ok(length <= 512, `${length} octets`);
    assert.deepEqual(seen, [length - 100, length]);
  });

  test("on a derived query is one on the client's", () => {
    const query = makeTestQuery({ name: "a.example." });
    query.derive({ name: Name.parse("b.example.") }).addSeal({ room: 1, seal: (_, length) => length + 1 });
    assert.equal(query.seals?.length, 1);
  });
});

describe("TSIG is found", () => {
  test("where it ends the message, and a message with it elsewhere does not parse", async () => {
    const { Query: QueryClass } = await import("../../plugin/query/query.ts");
    const plain = makeTestQuery({ name: "a.example.", edns: {} });
    assert.deepEqual([plain.isSigned, plain.tsigOffset], [false, -1]);
    const tsig = Uint8Array.of(
      1,
      107,
      0,
      0,
      250,
      0,
      255,
      0,
      0,
      0,
      0,
      0,
      17,
      ...new Array<number>(17).fill(0),
    );
    const signed = Uint8Array.of(...plain.packet, ...tsig);
    signed[11] = 2;
    const query = QueryClass.read(signed, signed.length, plain);
    assert.deepEqual(
      [query?.isSigned, query?.tsigOffset, query?.optOffset],
      [true, plain.length, plain.optOffset],
    );
    const opt = plain.packet.subarray(plain.questionEnd);
    const misplaced = Uint8Array.of(...plain.packet.subarray(0, plain.questionEnd), ...tsig, ...opt);
    misplaced[11] = 2;
    assert.equal(QueryClass.read(misplaced, misplaced.length, plain), undefined);
  });
});

describe("a reply to a derived query", () => {
  const answering: Handler = (query) =>
    query.reply({ answer: records(`${query.name} 5 IN CNAME target.${query.name}`) });

  function askThrough(handle: Handler, name: string): { query: Query; octets: Uint8Array } {
    const chain = buildChain(
      [
        { name: "front", handle: (query, next) => next(query) },
        { name: "renamer", handle },
        { name: "back", handle: answering },
      ],
      (_plugin, error) => assert.fail(error),
    );
    const query = makeTestQuery({ name });
    const outcome = chain?.(query);
    assert.ok(outcome !== undefined && !(outcome instanceof Promise) && outcome.kind === "reply");
    assert.equal(outcome.query, query, "the front sees a reply to its own query");
    const port = new KeepingPort({ takesParts: false });
    const length = writeReply(query, outcome, port);
    port.send(length);
    return { query, octets: port.sent[0] ?? new Uint8Array(0) };
  }

  test("has the question of the query that it was derived from, and its own records", () => {
    const other = Name.parse("other.example.net.");
    const { octets } = askThrough((query, next) => next(query.derive({ name: other })), "Asked.Example.");
    const message = decodeMessage(octets);
    assert.equal(message.questions[0]?.name.toString(), "Asked.Example.");
    assert.deepEqual(message.answer.map(shown), ["other.example.net. 5 IN CNAME target.other.example.net."]);
  });

  test("of another spelling is another question, whose octets serve as they are", () => {
    const { octets } = askThrough(
      (query, next) => next(query.derive({ name: query.name.toLowerCase() })),
      "ASKED.example.",
    );
    const message = decodeMessage(octets);
    assert.equal(message.questions[0]?.name.toString(), "ASKED.example.");
    assert.equal(message.answer.length, 1);
  });

  test("says what the plugin makes of it: an rcode and flags stay", () => {
    const { octets } = askThrough((query, next) => {
      const outcome = next(query.derive({ name: Name.parse("x.") }));
      assert.ok(!(outcome instanceof Promise) && outcome.kind === "reply");
      outcome.rcode = Rcode.NXDOMAIN;
      outcome.setFlag(Flag.AA, true);
      return outcome;
    }, "a.example.");
    const message = decodeMessage(octets);
    assert.equal(message.rcode, Rcode.NXDOMAIN);
  });
});
