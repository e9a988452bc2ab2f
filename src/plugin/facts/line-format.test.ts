import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Flag, Opcode, Rcode } from "../../dns/index.ts";
import type { ReplyContent } from "../query/reply.ts";
import { makeTestQuery, type QuestionOptions, records } from "../testing.ts";
import { LineFormat, unknownPlaceholders } from "./line-format.ts";

interface Case {
  readonly format: string;
  readonly expected: string;
  readonly question?: Partial<QuestionOptions>;
  /** A drop when undefined is given. */
  readonly reply?: ReplyContent | undefined;
  /** Milliseconds. */
  readonly elapsed?: number;
}

function lineOf(given: Case): string {
  const query = makeTestQuery({ name: "www.Example.org.", ...given.question });
  const content = "reply" in given ? given.reply : {};
  const reply = content === undefined ? undefined : query.reply(content);
  return new LineFormat(given.format).line(query, reply, given.elapsed ?? 1);
}

const A_RECORD = records("www.example.org. 60 IN A 192.0.2.1");

const CASES: readonly Case[] = [
  { format: "{type} {class} {name}", expected: "A IN www.example.org." },
  {
    format: "{type} {class} {name}",
    expected: "TYPE65280 CH a\\.b\\000.example.",
    question: { type: "TYPE65280", class: 3, name: "A\\.b\\000.example." },
  },
  { format: "{class}", expected: "CLASS9", question: { class: 9 } },
  { format: "{remote}:{port} {local}", expected: "192.0.2.1:40000 192.0.2.53" },
  {
    format: "{remote}:{port}",
    expected: "[2001:db8::7]:1025",
    question: { client: "2001:db8::7", clientPort: 1025 },
  },
  { format: "{proto} {>bufsize}", expected: "udp 512" },
  { format: "{proto} {>bufsize}", expected: "udp 4096", question: { edns: { udpSize: 4096 } } },
  { format: "{proto} {>bufsize}", expected: "udp 512", question: { edns: { udpSize: 100 } } },
  { format: "{proto} {>bufsize}", expected: "tcp 65535", question: { transport: "tcp" } },
  { format: "{proto}", expected: "tcp", question: { transport: "tls" } },
  { format: "{proto}", expected: "tcp", question: { transport: "https" } },
  { format: "{proto}", expected: "udp", question: { transport: "quic" } },
  { format: "{size} {>do}", expected: "33 false" },
  { format: "{size} {>do}", expected: "44 true", question: { edns: { dnssecOk: true } } },
  { format: "{>id} {>opcode}", expected: "77 4", question: { id: 77, opcode: Opcode.NOTIFY } },
  { format: "{rcode}", expected: "NXDOMAIN", reply: { rcode: Rcode.NXDOMAIN } },
  { format: "{rcode}", expected: "3841", reply: { rcode: 3841 } },
  { format: "{rsize}", expected: "33" },
  { format: "{rsize}", expected: "49", reply: { answer: A_RECORD } },
  { format: "{rsize}", expected: "60", question: { edns: {} }, reply: { answer: A_RECORD } },
  { format: "{rcode} {>rflags} {rsize}", expected: "- - 0", reply: undefined },
  { format: "{>rflags}", expected: "qr,rd" },
  { format: "{>rflags}", expected: "qr", question: { flags: 0 } },
  { format: "{>rflags}", expected: "qr", question: { opcode: Opcode.NOTIFY } },
  {
    format: "{>rflags}",
    expected: "qr,aa,tc,rd,ra,ad,cd",
    question: { flags: Flag.RD | Flag.CD | Flag.AD | Flag.Z },
    reply: { authoritative: true, truncated: true, recursionAvailable: true, authenticData: true },
  },
  { format: "{duration}", expected: "0.001s" },
  { format: "{duration}", expected: "0s", elapsed: 0 },
  { format: "{duration}", expected: "0s", elapsed: -0.5 },
  { format: "{duration}", expected: "0.000000001s", elapsed: 1e-6 },
  { format: "{duration}", expected: "0.000123457s", elapsed: 0.123_456_7 },
  { format: "{duration}", expected: "2s", elapsed: 2_000 },
  { format: "{duration}", expected: "6.010923182s", elapsed: 6_010.923_182 },
  { format: "{duration}", expected: "100.5s", elapsed: 100_500 },
  { format: "{unknown} {TYPE} {>z}", expected: "{unknown} {TYPE} {>z}" },
  { format: "{ {type}} {{name}", expected: "{ A} {www.example.org." },
  { format: "", expected: "" },
  { format: "plain", expected: "plain" },
  { format: "{/x/y} {/x} {//y} {/x/}", expected: "- {/x} {//y} {/x/}" },
];

for (const given of CASES) {
  test(`${JSON.stringify(given.format)} gives ${JSON.stringify(given.expected)}`, () => {
    assert.equal(lineOf(given), given.expected);
  });
}

test("labels have their value, and none is a dash", () => {
  const query = makeTestQuery({ name: "example.org." });
  query.metadata = new Map();
  query.setMetadata("forward/upstream", "192.0.2.2:53");
  query.setMetadata("kubernetes/client-namespace", () => "shop");
  query.setMetadata("a/b/c", "deep");
  query.setMetadata("a/empty", "");
  const format = new LineFormat(
    "{/forward/upstream} {/kubernetes/client-namespace} {/a/b/c} {/a/empty} {/a/absent}",
  );
  assert.equal(format.line(query, undefined, 0), "192.0.2.2:53 shop deep - -");
});

test("durations are read by people and programs: digits, at most nine decimals, no exponent", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1e9, noNaN: true }), (elapsed) => {
      const text = lineOf({ format: "{duration}", expected: "", elapsed });
      assert.match(text, /^\d+(\.\d{0,8}[1-9])?s$/);
      assert.ok(Math.abs(Number(text.slice(0, -1)) - elapsed / 1000) <= 1e-9);
    }),
  );
});

test("any text is a format", () => {
  fc.assert(
    fc.property(fc.string(), (text) => {
      const line = lineOf({ format: text.replaceAll("{", "("), expected: "" });
      assert.equal(line, text.replaceAll("{", "("));
      assert.equal(typeof lineOf({ format: text, expected: "" }), "string");
    }),
  );
});

test("an unknown placeholder is found, with the one that was probably meant", () => {
  const found = (format: string) =>
    unknownPlaceholders(format, ["{common}"]).map(({ start, end, meant }) => [
      format.slice(start, end),
      meant,
    ]);
  assert.deepEqual(found("{typ} {type} {id} {>rflag} {nothing.alike} {typ}"), [
    ["{typ}", "{type}"],
    ["{id}", "{>id}"],
    ["{>rflag}", "{>rflags}"],
    ["{nothing.alike}", undefined],
    ["{typ}", "{type}"],
  ]);
  assert.deepEqual(found('{"name": "{name}", "a": 1} {} { } {/kubernetes/client-namespace} {common}'), []);
});
