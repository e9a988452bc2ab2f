import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import {
  A,
  decodeMessage,
  EdnsOptionCode,
  extendedError,
  Flag,
  type Message,
  Name,
  Rcode,
  RecordType,
  SOA,
  TXT,
} from "../../dns/index.ts";
import type { Reply, ReplyContent } from "../../plugin/query/reply.ts";
import { makeTestQuery, type QuestionOptions, records, recordText } from "../../plugin/testing.ts";
import { writeReply } from "./reply-writer.ts";

const GUARD = 0xee;

/** Writes the reply as a listener does, and checks that not one octet beyond the announced ones was touched. */
function written(
  question: QuestionOptions,
  content: ReplyContent,
  change: (made: Reply) => void = () => undefined,
): Message & { size: number } {
  const query = makeTestQuery(question);
  const made = query.reply(content);
  change(made);
  let capacity = 0;
  let out = new Uint8Array(0);
  const length = writeReply(query, made, {
    buffer(size) {
      capacity = size;
      out = new Uint8Array(size + 8).fill(GUARD);
      return out;
    },
  });
  assert.ok(length <= capacity, `${length} octets written where ${capacity} were announced`);
  assert.deepEqual(out.subarray(capacity), new Uint8Array(8).fill(GUARD));
  return { ...decodeMessage(out.subarray(0, length)), size: length };
}

const addresses = (count: number, owner = "www.example.org."): ReturnType<typeof records> =>
  Array.from({ length: count }, (_, n) =>
    A.create(Name.parse(owner), 60, { address: `10.0.${n >> 8}.${n & 255}` }),
  );

describe("header", () => {
  test("id, question in the client's spelling, RD and CD are the client's; RA and AA the reply's", () => {
    const message = written(
      { name: "wWw.Example.ORG.", id: 0xbeef, flags: Flag.RD | Flag.CD },
      { authoritative: true, answer: addresses(1) },
    );
    assert.equal(message.id, 0xbeef);
    assert.equal(message.flags, Flag.QR | Flag.AA | Flag.RD | Flag.CD);
    assert.equal(String(message.questions[0]?.name), "wWw.Example.ORG.");
    // The owner points to the question and so has its spelling.
    assert.equal(String(message.answer[0]?.name), "wWw.Example.ORG.");
  });

  test("a NOTIFY keeps its opcode and copies no RD", () => {
    const message = written({ name: "example.org.", type: "SOA", opcode: 4 }, {});
    assert.equal(message.opcode, 4);
    assert.equal(message.flags & Flag.RD, 0);
  });
});

describe("OPT", () => {
  const edns = { udpSize: 4096, dnssecOk: true };
  test("none for a client without, over any transport, even if a plugin put one there", () => {
    assert.equal(written({ name: "a." }, {}).edns, undefined);
    const edns = { udpSize: 4096, version: 0, dnssecOk: true, options: [extendedError(15)] };
    for (const transport of ["udp", "tcp", "tls", "https"] as const) {
      const query = makeTestQuery({ name: "a.", transport });
      assert.equal(query.reply({ edns }).size, query.questionEnd);
      assert.equal(written({ name: "a.", transport }, { edns }).edns, undefined);
    }
  });

  test("the client's size and DO come back, and its cookies do not", () => {
    const options = [
      { code: EdnsOptionCode.COOKIE, data: new Uint8Array(8).fill(5) },
      { code: EdnsOptionCode.CLIENT_SUBNET, data: new Uint8Array([0, 1, 0, 0]) },
    ];
    const message = written({ name: "a.", edns: { ...edns, options } }, {});
    assert.equal(message.edns?.udpSize, 4096);
    assert.equal(message.edns?.dnssecOk, true);
    // It knows no cookies, and no networks of clients.
    assert.deepEqual(message.edns?.options, []);
  });

  test("of all options of a client, none comes back that the server has no answer to", () => {
    // A network of zeros is malformed.
    for (let code = 0; code < 30; code += code === 7 ? 2 : 1) {
      const options = [{ code, data: new Uint8Array(8).fill(5) }];
      const message = written({ name: "a.", edns: { ...edns, options } }, {});
      assert.deepEqual(message.edns?.options, [], `code ${code}`);
    }
  });

  test("a plugin's OPT keeps its options and takes size and DO from the client", () => {
    const own = { udpSize: 512, version: 0, dnssecOk: true, options: [extendedError(17, "why")] };
    const message = written({ name: "a.", edns: { udpSize: 1400 } }, { edns: own });
    assert.deepEqual(message.edns, { udpSize: 1400, version: 0, dnssecOk: false, options: own.options });
  });

  test("options that alone are more than the client takes are left out", () => {
    const padding = (octets: number) => ({ code: EdnsOptionCode.PADDING, data: new Uint8Array(octets) });
    const edns = (octets: number) => ({
      udpSize: 512,
      version: 0,
      dnssecOk: false,
      options: [padding(octets)],
    });
    const room = 512 - 12 - 17 - 4 - 11 - 4;
    const name = "www.example.org.";
    const echoedOptions = [EdnsOptionCode.PADDING];
    assert.equal(written({ name, edns: edns(room), echoedOptions }, {}).size, 512);
    for (const octets of [room + 1, 1400, 60_000]) {
      const message = written({ name, edns: edns(octets), echoedOptions }, { answer: addresses(1) });
      assert.deepEqual(message.edns?.options, []);
      assert.equal(message.answer.length, 1);
    }
    const own = written({ name, edns: edns(0) }, { edns: edns(600) });
    assert.deepEqual(own.edns?.options, []);
  });

  test("who pads over an encrypted transport gets a multiple of 468 octets, and over plain ones no padding", () => {
    const options = [{ code: EdnsOptionCode.PADDING, data: new Uint8Array(7) }];
    const ask = (transport: "udp" | "tcp" | "tls" | "https", count: number) =>
      written(
        { name: "www.example.org.", transport, edns: { ...edns, options } },
        { answer: addresses(count) },
      );
    for (const transport of ["tls", "https"] as const) {
      for (const count of [0, 1, 20, 26, 27, 28, 29, 400]) {
        const message = ask(transport, count);
        assert.equal(message.size % 468, 0, `${message.size} octets with ${count} addresses`);
        assert.equal(message.answer.length, count);
        assert.deepEqual(
          message.edns?.options.map(({ code }) => code),
          [EdnsOptionCode.PADDING],
        );
      }
      assert.ok(ask(transport, 0).size === 468);
      // No room for another block: as much as fits.
      assert.ok(ask(transport, 4_090).size <= 65_535);
      assert.deepEqual(written({ name: "a.", transport, edns }, {}).edns?.options, []);
    }
    for (const transport of ["udp", "tcp"] as const) assert.deepEqual(ask(transport, 1).edns?.options, []);
  });

  test("an rcode above 15 needs OPT for its upper bits, and is SERVFAIL without", () => {
    assert.equal(written({ name: "a.", edns }, { rcode: Rcode.BADVERS }).rcode, Rcode.BADVERS);
    assert.equal(written({ name: "a." }, { rcode: Rcode.BADCOOKIE }).rcode, Rcode.SERVFAIL);
  });
});

describe("size", () => {
  test("thirty addresses fit 512 octets", () => {
    const message = written({ name: "www.example.org." }, { answer: addresses(28) });
    assert.equal(message.answer.length, 28);
    assert.equal(message.flags & Flag.TC, 0);
  });

  test("what does not fit is cut at a record, with TC, and OPT stays", () => {
    const plain = written({ name: "www.example.org." }, { answer: addresses(200) });
    assert.ok(plain.size <= 512 && plain.answer.length < 200 && (plain.flags & Flag.TC) !== 0);
    const sized = written({ name: "www.example.org.", edns: { udpSize: 1232 } }, { answer: addresses(200) });
    assert.ok(
      sized.size <= 1232 && sized.size > 1200 && sized.edns !== undefined && (sized.flags & Flag.TC) !== 0,
    );
  });

  test("dropping only additional records sets TC as well", () => {
    const message = written(
      { name: "www.example.org." },
      { answer: addresses(5), additional: addresses(200, "other.example.org.") },
    );
    assert.equal(message.answer.length, 5);
    assert.ok(
      message.additional.length > 0 && message.additional.length < 200 && (message.flags & Flag.TC) !== 0,
    );
  });

  test("streams take up to 65535 octets, and TC beyond", () => {
    const whole = written({ name: "www.example.org.", transport: "tcp" }, { answer: addresses(3000) });
    assert.equal(whole.answer.length, 3000);
    const text = TXT.create(Name.parse("www.example.org."), 5, { strings: [new Uint8Array(255)] });
    const cut = written(
      { name: "www.example.org.", type: "TXT", transport: "tcp", edns },
      { answer: Array.from({ length: 300 }, () => text) },
    );
    assert.ok(
      cut.size <= 65535 && cut.answer.length < 300 && (cut.flags & Flag.TC) !== 0 && cut.edns !== undefined,
    );
  });

  for (const [name, more, whole] of [
    ["the longest that an IPv4 packet takes", 0, true],
    ["one octet more than an IPv4 packet takes", 1, false],
  ] as const) {
    test(`a datagram of ${name} is ${whole ? "whole" : "cut"}, whatever the client would take`, () => {
      // A question of 21 octets behind the header, an OPT of 11, and records of 12 octets and their strings.
      const owner = Name.parse("www.example.org.");
      const text = (octets: number) => TXT.create(owner, 5, { strings: [new Uint8Array(octets)] });
      const filler = Array.from({ length: 243 }, () => text(255));
      const rest = 65_507 - (12 + 21 + 11 + 243 * (12 + 256)) - 2 * 12;
      const answer = [...filler, text(rest - 256 - 1 + more), text(255)];
      const message = written(
        { name: "www.example.org.", type: "TXT", edns: { udpSize: 65_535 } },
        { answer },
      );
      assert.equal(message.answer.length, whole ? answer.length : answer.length - 1);
      assert.equal((message.flags & Flag.TC) !== 0, !whole);
      if (whole) assert.equal(message.size, 65_507);
    });
  }

  test("a plugin may lower the limit, but not below 512", () => {
    const query = makeTestQuery({ name: "www.example.org.", edns: { udpSize: 4096 } });
    query.replyLimit = 600;
    const out = new Uint8Array(4096);
    const length = writeReply(query, query.reply({ answer: addresses(200) }), { buffer: () => out });
    assert.ok(length <= 600 && length > 512);
  });

  const edns = { udpSize: 4096 };
});

describe("records", () => {
  test("the uniform TTL replaces that of every record", () => {
    const message = written(
      { name: "www.example.org." },
      { answer: addresses(2), authority: records("example.org. 99 IN NS ns.example.org.") },
      (made) => made.setUniformTtl(7),
    );
    assert.deepEqual(
      [...message.answer, ...message.authority].map(({ ttl }) => ttl),
      [7, 7, 7],
    );
  });

  test("a reply to a renamed question repeats the client's question and keeps its own owners", () => {
    const query = makeTestQuery({ name: "short." });
    const renamed = query.derive({ name: Name.parse("a.much.longer.name.example.org.") });
    const made = renamed.reply({
      encoded: renamed.reply({ answer: addresses(2, "a.much.longer.name.example.org.") }).encoded,
    });
    const out = new Uint8Array(512);
    const message = decodeMessage(out.subarray(0, writeReply(query, made, { buffer: () => out })));
    assert.equal(String(message.questions[0]?.name), "short.");
    assert.deepEqual(
      message.answer.map(recordText),
      addresses(2, "a.much.longer.name.example.org.").map(recordText),
    );
  });

  test("shuffling permutes addresses, loses none, and touches nothing else", () => {
    const given = {
      answer: [
        ...records("www.example.org. 5 IN CNAME web.example.org."),
        ...addresses(6, "web.example.org."),
      ],
    };
    const seen = new Set<string>();
    for (let seed = 1; seed <= 200; seed++) {
      const message = written({ name: "www.example.org." }, given, (made) => {
        made.shuffle = seed * 2654435761;
      });
      const texts = message.answer.map(recordText);
      assert.equal(texts[0], "www.example.org. 5 IN CNAME web.example.org.");
      assert.deepEqual([...texts].sort(), given.answer.map(recordText).sort());
      seen.add(texts[1] ?? "");
    }
    assert.equal(seen.size, 6);
  });

  test("a shuffled reply that is cut shows only whole records of the set", () => {
    const known = new Set(addresses(100).map(recordText));
    const message = written({ name: "www.example.org." }, { answer: addresses(100) }, (made) => {
      made.shuffle = 99;
    });
    assert.ok(message.answer.every((record) => known.has(recordText(record))));
    assert.equal(new Set(message.answer.map(recordText)).size, message.answer.length);
  });
});

test("any mix of sections decodes to a prefix of what was given, within the client's size", () => {
  const record = fc.oneof(
    fc.nat(255).map((n) => A.create(Name.parse(`h${n}.example.org.`), n, { address: `192.0.2.${n}` })),
    fc
      .uint8Array({ minLength: 1, maxLength: 255 })
      .map((text) => TXT.create(Name.parse("t.example.org."), 1, { strings: [text] })),
    fc.nat().map((serial) =>
      SOA.create(Name.parse("example.org."), 5, {
        primary: Name.parse("ns.example.org."),
        mailbox: Name.parse("hostmaster.example.org."),
        serial: serial >>> 0,
        refresh: 1,
        retry: 2,
        expire: 3,
        minimum: 4,
      }),
    ),
  );
  fc.assert(
    fc.property(
      fc.array(record),
      fc.array(record),
      fc.array(record),
      fc.option(fc.integer({ min: 0, max: 5000 })),
      (answer, authority, additional, udpSize) => {
        const message = written(
          { name: "h1.example.org.", type: "ANY", ...(udpSize !== null && { edns: { udpSize } }) },
          { answer, authority, additional },
        );
        assert.ok(message.size <= Math.max(512, udpSize ?? 0));
        const given = [...answer, ...authority, ...additional].map(recordText);
        const shown = [...message.answer, ...message.authority, ...message.additional].map(recordText);
        assert.deepEqual(shown, given.slice(0, shown.length));
        assert.equal((message.flags & Flag.TC) !== 0, shown.length < given.length);
      },
    ),
  );
  assert.equal(RecordType.ANY, 255);
});
