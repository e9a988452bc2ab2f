/** Messages that are not proper queries: FORMERR, NOTIMP or silence, counted, and the process survives. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { decodeMessage } from "../../src/dns/message.ts";
import { rcodeName } from "../../src/dns/numbers.ts";
import { queryOctets, TcpClient, UdpClient } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";
import { hex, rawMessage, rawName, rawOpt, rawOption, rawQuestion } from "../support/raw-message.ts";

const question = rawQuestion(rawName("www", "example", "org"));
const opt = rawOpt();
const record = hex("00 0001 0001 00000000 0004 7f000001");
const padded = rawOpt({ udpSize: 512, options: rawOption(12, Buffer.alloc(1400)) });

/** The octets of the whole answer, in hexadecimal. */
const FORMERR = "4242 8101 0000 0000 0000 0000";
const FORMERR_WITH_QUESTION = `4242 8101 0001 0000 0000 0000 ${question.toString("hex")}`;
const notImplemented = (opcode: number): string =>
  `4242 ${(0x8104 | (opcode << 11)).toString(16)} 0000 0000 0000 0000`;
const SILENCE = "";

interface Rejected {
  readonly title: string;
  readonly octets: Buffer;
  readonly reply: string;
}

const REJECTED: readonly Rejected[] = [
  { title: "one octet", octets: hex("42"), reply: SILENCE },
  { title: "11 octets", octets: rawMessage({}).subarray(0, 11), reply: SILENCE },
  { title: "a reply", octets: rawMessage({ flags: 0x8180 }, question), reply: SILENCE },
  { title: "a reply's header", octets: rawMessage({ flags: 0x8000 }), reply: SILENCE },
  { title: "a reply to an UPDATE", octets: rawMessage({ flags: 0xa800 }), reply: SILENCE },
  ...[1, 2, 3, 5, 6, 15].map((opcode) => ({
    title: `opcode ${opcode}`,
    octets: rawMessage({ flags: 0x0100 | (opcode << 11) }, question),
    reply: notImplemented(opcode),
  })),
  {
    title: "UPDATE whose counts are rubbish",
    octets: rawMessage({ flags: 0x2900, counts: [9, 0xffff, 0xffff, 0xffff] }),
    reply: notImplemented(5),
  },
  { title: "a header without counts", octets: rawMessage({ counts: [0, 0, 0, 0] }), reply: FORMERR },
  { title: "a header that promises a question", octets: rawMessage({}), reply: FORMERR },
  {
    title: "two questions",
    octets: rawMessage({ counts: [2, 0, 0, 0] }, question, question),
    reply: FORMERR,
  },
  { title: "65535 questions", octets: rawMessage({ counts: [0xffff, 0, 0, 0] }, question), reply: FORMERR },
  ...[
    [1, 2, 0, 0],
    [1, 0, 2, 0],
    [1, 0, 0, 3],
    [1, 0xffff, 0xffff, 0xffff],
  ].map(([questions = 0, answers = 0, authorities = 0, additionals = 0]) => ({
    title: `counts ${questions}, ${answers}, ${authorities}, ${additionals} and a question alone`,
    octets: rawMessage({ counts: [questions, answers, authorities, additionals] }, question),
    reply: FORMERR,
  })),
  ...(
    [
      [1, 2, 0, 0],
      [1, 0, 2, 0],
      [1, 0, 0, 3],
    ] as const
  ).map((counts) => ({
    title: `counts ${counts.join(", ")} and all of the records`,
    octets: rawMessage({ counts }, question, ...Array(counts[1] + counts[2] + counts[3]).fill(record)),
    reply: FORMERR,
  })),
  {
    title: "two OPT records",
    octets: rawMessage({ counts: [1, 0, 0, 2] }, question, opt, opt),
    reply: FORMERR_WITH_QUESTION,
  },
  {
    title: "two OPT records and rubbish",
    octets: rawMessage({ counts: [1, 0, 0, 2] }, question, opt, opt, hex("0102")),
    reply: FORMERR_WITH_QUESTION,
  },
  {
    title: "half a record behind OPT",
    octets: rawMessage({ counts: [1, 0, 0, 2] }, question, opt, hex("00 0001 0001")),
    reply: FORMERR,
  },
  {
    title: "OPT with an owner",
    octets: rawMessage({ counts: [1, 0, 0, 1] }, question, rawOpt({ owner: rawName("a") })),
    reply: FORMERR,
  },
  {
    title: "OPT longer than the message",
    octets: rawMessage({ counts: [1, 0, 0, 1] }, question, rawOpt({ length: 5 })),
    reply: FORMERR,
  },
  {
    title: "an EDNS option longer than OPT",
    octets: rawMessage(
      { counts: [1, 0, 0, 1] },
      question,
      rawOpt({ options: rawOption(10, hex("0102"), 8) }),
    ),
    reply: FORMERR,
  },
  {
    title: "half an EDNS option",
    octets: rawMessage({ counts: [1, 0, 0, 1] }, question, rawOpt({ options: hex("000a00") })),
    reply: FORMERR,
  },
  {
    title: "a record that is longer than the message",
    octets: rawMessage({ counts: [1, 1, 0, 0] }, question, hex("00 0001 0001 00000000 ffff 7f000001")),
    reply: FORMERR,
  },
  {
    title: "an address of three octets",
    octets: rawMessage({ counts: [1, 1, 0, 0] }, question, hex("00 0001 0001 00000000 0003 7f0000")),
    reply: FORMERR,
  },
  {
    title: "a pointer to itself in a record's owner",
    octets: rawMessage({ counts: [1, 1, 0, 0] }, question, hex("c021 0001 0001 00000000 0004 7f000001")),
    reply: FORMERR,
  },
  {
    title: "a question that is a pointer to itself",
    octets: rawMessage({}, hex("c00c 0001 0001")),
    reply: FORMERR,
  },
  {
    title: "a question that points ahead",
    octets: rawMessage({}, hex("c012 0001 0001 03777777 00")),
    reply: FORMERR,
  },
  {
    title: "a question that points into the header",
    octets: rawMessage({}, hex("c004 0001 0001")),
    reply: FORMERR,
  },
  {
    title: "a pointer behind a label",
    octets: rawMessage({}, hex("03777777 c00c 0001 0001")),
    reply: FORMERR,
  },
  { title: "half a pointer", octets: rawMessage({}, hex("03777777 c0")), reply: FORMERR },
  {
    title: "a label of the extended kind",
    octets: rawMessage({}, hex("41 00 0001 0001"), question),
    reply: FORMERR,
  },
  {
    title: "a label of the reserved kind",
    octets: rawMessage({}, hex("80 00 0001 0001"), question),
    reply: FORMERR,
  },
  { title: "a label that never ends", octets: rawMessage({}, hex("3f 777777")), reply: FORMERR },
  { title: "a name without end", octets: rawMessage({}, ...Array(60).fill(hex("0161"))), reply: FORMERR },
  {
    title: "a name of 256 octets",
    octets: rawMessage({}, rawQuestion(rawName(..."abc".split("").map((c) => c.repeat(63)), "d".repeat(62)))),
    reply: FORMERR,
  },
];

/** Irregularities that most servers tolerate: answered as if regular, and counted. */
const IRREGULAR: readonly { readonly title: string; readonly octets: Buffer; readonly edns: boolean }[] = [
  ...(
    [
      [1, 1, 0, 0],
      [1, 0, 1, 0],
      [1, 0, 0, 1],
      [1, 0, 0, 2],
    ] as const
  ).map((counts) => ({
    title: `counts ${counts.join(", ")} and a question alone`,
    octets: rawMessage({ counts }, question),
    edns: false,
  })),
  {
    title: "two records announced, one there",
    octets: rawMessage({ counts: [1, 0, 0, 2] }, question, opt),
    edns: true,
  },
  { title: "octets behind the question", octets: rawMessage({}, question, hex("00")), edns: false },
  { title: "zeros up to 512 octets", octets: rawMessage({}, question, Buffer.alloc(512)), edns: false },
  {
    title: "the largest datagram there is",
    octets: rawMessage({}, question, Buffer.alloc(65_400)),
    edns: false,
  },
  {
    title: "OPT and a kilobyte of rubbish",
    octets: rawMessage({ counts: [1, 0, 0, 1] }, question, opt, Buffer.alloc(1024, 0xc0)),
    edns: true,
  },
];

/** Cuts of a query with EDNS at every octet behind the header. */
const whole = rawMessage(
  { counts: [1, 0, 0, 1] },
  question,
  rawOpt({ options: rawOption(10, Buffer.alloc(8)) }),
);

let server: Portolan;
before(async () => {
  server = await Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      errors
      whoami
      prometheus 127.0.0.1:${port("metrics")}
      timeouts {
        read 1m
        idle 1m
      }
    }`,
  );
});
after(() => server[Symbol.asyncDispose]());

const FOLLOWER = 0x7777;
const follower = queryOctets("follower.example.org", "A", FOLLOWER);

function text(octets: Uint8Array | undefined): string {
  return octets === undefined ? "nothing" : Buffer.from(octets).toString("hex");
}

/** Sends the message and a good query behind it: where the first reply is to the good one, the message got none. */
async function checkRejection(client: UdpClient | TcpClient, { octets, reply }: Rejected): Promise<void> {
  client.send(octets);
  client.send(follower);
  const first = await client.receive();
  if (reply !== SILENCE) assert.equal(text(first), reply.replaceAll(" ", ""));
  const good = reply === SILENCE ? first : await client.receive();
  assert.equal(decodeMessage(good ?? hex("")).id, FOLLOWER);
}

for (const [transport, connect] of [
  ["UDP", () => UdpClient.connect(server)],
  ["TCP", () => TcpClient.connect(server)],
] as const) {
  describe(`a message over ${transport}`, () => {
    for (const rejected of REJECTED) {
      test(`${rejected.title}: ${rejected.reply === SILENCE ? "no reply" : `reply ${rejected.reply}`}`, async () => {
        await using client = await connect();
        await checkRejection(client, rejected);
      });
    }

    for (const { title, octets, edns } of IRREGULAR) {
      test(`${title}: NOERROR`, async () => {
        await using client = await connect();
        client.send(octets);
        const message = decodeMessage((await client.receive()) ?? assert.fail("no reply"));
        assert.equal(message.rcode, 0);
        assert.equal(message.questions[0]?.name.toString(), "www.example.org.");
        assert.equal(message.edns !== undefined, edns);
      });
    }

    test("a query cut off at any octet: no reply below 12 octets, else FORMERR", async () => {
      await using client = await connect();
      for (let length = 1; length < whole.length; length++) {
        // A question without the record that is to follow.
        if (length === 12 + question.length) continue;
        const octets = Buffer.from(whole.subarray(0, length));
        await checkRejection(client, { title: "", octets, reply: length < 12 ? SILENCE : FORMERR });
      }
    });

    const answered: readonly { title: string; octets: Buffer; rcode: string; edns: boolean }[] = [
      {
        title: "a name of 255 octets",
        octets: rawMessage(
          {},
          rawQuestion(rawName(...["a", "b", "c"].map((c) => c.repeat(63)), "d".repeat(61))),
        ),
        rcode: "NOERROR",
        edns: false,
      },
      { title: "the root", octets: rawMessage({}, rawQuestion(rawName())), rcode: "NOERROR", edns: false },
      {
        title: "labels of any octets",
        octets: rawMessage({}, rawQuestion(rawName("\0\x2e\n", "\xff\x80"))),
        rcode: "NOERROR",
        edns: false,
      },
      {
        title: "another class",
        octets: rawMessage({}, rawQuestion(rawName("example"), 1, 3)),
        rcode: "REFUSED",
        edns: false,
      },
      {
        title: "EDNS version 1",
        octets: rawMessage({ counts: [1, 0, 0, 1] }, question, rawOpt({ version: 1 })),
        rcode: "BADVERS",
        edns: true,
      },
      {
        title: "more padding than the client has room for",
        octets: rawMessage({ counts: [1, 0, 0, 1] }, question, padded),
        rcode: "NOERROR",
        edns: true,
      },
      {
        title: "EDNS with room for no octet",
        octets: rawMessage({ counts: [1, 0, 0, 1] }, question, rawOpt({ udpSize: 0 })),
        rcode: "NOERROR",
        edns: true,
      },
      {
        title: "a record in each section",
        octets: rawMessage({ counts: [1, 1, 1, 2] }, question, record, record, record, opt),
        rcode: "NOERROR",
        edns: true,
      },
      { title: "NOTIFY", octets: rawMessage({ flags: 0x2000 }, question), rcode: "NOERROR", edns: false },
    ];
    for (const { title, octets, rcode, edns } of answered) {
      test(`${title}: ${rcode}`, async () => {
        await using client = await connect();
        client.send(octets);
        const reply = await client.receive();
        assert.ok(reply, "no reply");
        const message = decodeMessage(reply);
        assert.equal(message.id, 0x4242);
        assert.equal(rcodeName(message.rcode), rcode);
        assert.equal(message.edns !== undefined, edns);
        assert.equal(message.edns?.version ?? 0, 0);
        if (transport === "UDP")
          assert.ok(reply.length <= 512, `${reply.length} octets for a client with room for 512`);
      });
    }

    test("an OPT record in the answer section is not EDNS", async () => {
      await using client = await connect();
      client.send(rawMessage({ counts: [1, 1, 0, 0] }, question, rawOpt({ version: 1 })));
      const reply = await client.receive();
      assert.ok(reply, "no reply");
      const message = decodeMessage(reply);
      assert.notEqual(rcodeName(message.rcode), "BADVERS");
      assert.equal(message.edns, undefined);
    });
  });
}

test("an empty datagram: no reply", async () => {
  await using client = await UdpClient.connect(server);
  await checkRejection(client, { title: "", octets: Buffer.alloc(0), reply: SILENCE });
});

test("what is rejected or ignored is counted", async () => {
  const count = async (name: string): Promise<number> => {
    const { body } = await server.page("metrics", "/metrics");
    return Number(new RegExp(`^portolan_dns_${name}_total\\{[^}]*\\} (\\d+)`, "m").exec(body)?.[1]);
  };
  const [rejected, ignored] = [await count("rejected_messages"), await count("ignored_messages")];
  await using client = await UdpClient.connect(server);
  for (const message of REJECTED) await checkRejection(client, message);
  const silences = REJECTED.filter(({ reply }) => reply === SILENCE).length;
  assert.equal((await count("ignored_messages")) - ignored, silences);
  assert.equal((await count("rejected_messages")) - rejected, REJECTED.length - silences);

  const irregular = await count("irregular_queries");
  for (const { octets } of IRREGULAR) {
    client.send(octets);
    assert.ok(await client.receive());
  }
  assert.equal((await count("irregular_queries")) - irregular, IRREGULAR.length);
});
