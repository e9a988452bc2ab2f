import assert from "node:assert/strict";
import { test } from "node:test";
import { Flag, Opcode, Rcode } from "../../dns/index.ts";
import { DROPPED, type Next, ReplyStream } from "../../plugin/index.ts";
import { answering, ConfigRefused, FakeClock, PluginTest, records } from "../../plugin/testing.ts";
import log from "./index.ts";

const A_RECORD = records("www.example.org. 60 IN A 192.0.2.1");
const SOA = records("example.org. 60 IN SOA ns.example.org. admin.example.org. 1 2 3 4 5");
const NS = records("example.org. 60 IN NS ns.example.org.");

const SUCCESS = answering({ answer: A_RECORD });
const NODATA = answering({ authority: SOA });
const NXDOMAIN = answering({ rcode: Rcode.NXDOMAIN, authority: SOA });

/** The lines logged for a query. */
async function linesOf(text: string, next: Next, name = "www.example.org."): Promise<string[]> {
  const running = PluginTest.of(log, text);
  await running.outcome({ name, next });
  return running.log.lines;
}

test("the line has the common format", async () => {
  const running = PluginTest.of(log, "log", { clock: new FakeClock({ now: 500 }) });
  await running.outcome({
    name: "WWW.Example.org.",
    id: 29_008,
    client: "2001:db8::1",
    clientPort: 50_759,
    edns: { udpSize: 4096, dnssecOk: true },
    next: (query) => {
      running.clock.advance(0.25);
      return query.reply({ authoritative: true, answer: A_RECORD });
    },
  });
  assert.deepEqual(running.log.lines, [
    '[INFO] [2001:db8::1]:50759 - 29008 "A IN www.example.org. udp 44 true 4096" NOERROR qr,aa,rd 60 0.00025s',
  ]);
});

for (const [title, text, expected] of [
  ["a format behind a name", 'log . "{type} {name}"', "A www.example.org."],
  [
    "{common}",
    'log . "{common}"',
    /^192\.0\.2\.1:40000 - 4711 "A IN .* udp 33 false 512" NOERROR qr,rd 49 0s$/,
  ],
  ["{combined}", 'log . "{combined}!"', /NOERROR qr,rd 49 0s "0"!$/],
  ["a format that holds another", 'log . "<{common}> {type}"', /^<192\.0\.2\.1.*0s> A$/],
] as const) {
  test(title, async () => {
    const [line = ""] = await linesOf(text, SUCCESS);
    if (typeof expected === "string") assert.equal(line, `[INFO] ${expected}`);
    else assert.match(line.replace("[INFO] ", ""), expected);
  });
}

for (const [text, name, logged] of [
  ["log", "anything.example.", true],
  ["log", ".", true],
  ["log example.org", "example.org.", true],
  ["log Example.ORG.", "a.b.eXample.org.", true],
  ["log example.org", "badexample.org.", false],
  ["log example.org example.net", "a.example.net.", true],
  ["log example.org example.net", "a.example.com.", false],
  ['log example.org example.net "{name}"', "a.example.net.", true],
] as const) {
  test(`${text} ${logged ? "logs" : "does not log"} ${name}`, async () => {
    assert.equal((await linesOf(text, SUCCESS, name)).length, logged ? 1 : 0);
  });
}

test("only the first rule whose scope contains the name applies", async () => {
  const text = 'log a.example.org "first" {\n class error\n}\nlog example.org "second {type}"\nlog . "third"';
  const format = text.replace('"first"', '"first {type}"').replace('"third"', '"third {type}"');
  assert.deepEqual(await linesOf(format, SUCCESS, "x.a.example.org."), []);
  assert.deepEqual(await linesOf(format, NODATA, "b.example.org."), ["[INFO] second A"]);
  assert.deepEqual(await linesOf(format, NODATA, "other."), ["[INFO] third A"]);
});

const ANSWERS: readonly (readonly [string, Next, "success" | "denial" | "error"])[] = [
  ["records", SUCCESS, "success"],
  ["a delegation", answering({ authority: NS }), "success"],
  ["an empty answer", answering({}), "success"],
  ["NODATA", NODATA, "denial"],
  ["NXDOMAIN", NXDOMAIN, "denial"],
  ["SERVFAIL", answering({ rcode: Rcode.SERVFAIL }), "error"],
  ["REFUSED", answering({ rcode: Rcode.REFUSED }), "error"],
  ["a failure", (query) => query.fail(), "error"],
  ["a drop", () => DROPPED, "error"],
];

for (const [title, next, expected] of ANSWERS) {
  test(`${title} is of the class ${expected}`, async () => {
    for (const one of ["success", "denial", "error"] as const) {
      const lines = await linesOf(`log . "{rcode} {name}" {\n class ${one}\n}`, next);
      assert.equal(lines.length, one === expected ? 1 : 0, one);
    }
    assert.equal((await linesOf("log {\n class all\n}", next)).length, 1);
    assert.equal((await linesOf("log {\n class error\n class denial success\n}", next)).length, 1);
  });
}

test("a failure is logged as the reply that the server makes of it, and passed on unchanged", async () => {
  const running = PluginTest.of(log, 'log . "{rcode} {>rflags} {rsize}"');
  const error = new Error("no upstream");
  const outcome = await running.outcome({
    name: "example.org.",
    edns: {},
    next: (query) => Promise.resolve(query.fail(Rcode.REFUSED, error)),
  });
  assert.deepEqual(running.log.lines, ["[INFO] REFUSED qr,rd 40"]);
  assert.equal(outcome.kind === "failed" && outcome.error, error);
});

test("{json} writes an object with all fields and without a prefix", async () => {
  const clock = new FakeClock({ now: 500, wallTime: Date.UTC(2026, 0, 31, 12) });
  const running = PluginTest.of(log, "log . {json}", { clock });
  await running.outcome({
    name: "WWW.Example.org.",
    id: 29_008,
    client: "2001:db8::1",
    clientPort: 50_759,
    edns: { udpSize: 4096, dnssecOk: true },
    next: (query) => {
      clock.advance(2.5);
      const reply = query.reply({ authoritative: true, answer: A_RECORD });
      reply.plugin = "file";
      return reply;
    },
  });
  assert.deepEqual(
    running.log.lines.map((line) => JSON.parse(line)),
    [
      {
        time: "2026-01-31T12:00:00.000Z",
        level: "info",
        client: "2001:db8::1",
        port: 50_759,
        local: "192.0.2.53",
        server: "dns://:53",
        proto: "udp",
        transport: "udp",
        id: 29_008,
        opcode: 0,
        name: "www.example.org.",
        type: "A",
        class: "IN",
        size: 44,
        do: true,
        bufsize: 4096,
        rcode: "NOERROR",
        flags: ["qr", "aa", "rd"],
        rsize: 60,
        duration: 0.0025,
        plugin: "file",
        view: null,
        trace_id: null,
      },
    ],
  );
});

test("{json} is one line of JSON for any names and labels", async () => {
  const running = PluginTest.of(log, "log . {json}");
  const query = running.query({ name: 'a\\010\\127\\255"{}.example.', type: "TXT" });
  const value = `${Array.from({ length: 0x100 }, (_, code) => String.fromCharCode(code)).join("")}\u2028`;
  query.metadata = new Map([
    ["x/y", value],
    ["__proto__", "p"],
  ]);
  await running.chain(() => DROPPED)(query);
  const [line = ""] = running.log.lines;
  const object = JSON.parse(line);
  assert.equal(running.log.lines.length, 1);
  assert.equal(object.metadata["x/y"], value);
  assert.equal(object.name, query.name.toString());
  assert.equal(object.rcode, null);
  assert.equal(object.plugin, null);
  assert.deepEqual(object.flags, []);
  assert.equal(object.rsize, 0);
});

for (const [options, logged] of [
  ["slower 100ms", ["slow"]],
  ["slower 100ms\n class error", ["broken", "slow"]],
  ["slower 100ms\n class all", ["fine", "broken", "slow"]],
  ["slower 0s", ["slow"]],
] as const) {
  test(`'${options.replace("\n", ";")}' logs ${logged.join(", ")}`, async () => {
    const clock = new FakeClock();
    const running = PluginTest.of(log, `log . "{name}" {\n ${options}\n}`, { clock });
    await running.outcome({ name: "fine.", next: SUCCESS });
    await running.outcome({ name: "broken.", next: (query) => query.fail() });
    await running.outcome({
      name: "slow.",
      next: async (query) => {
        clock.advance(101);
        return query.reply({ answer: A_RECORD });
      },
    });
    assert.deepEqual(
      running.log.lines,
      logged.map((name) => `[INFO] ${name}.`),
    );
  });
}

test("an answer of many messages is logged when it has ended, with their total size", async () => {
  const clock = new FakeClock();
  const running = PluginTest.of(log, 'log . "{type} {rcode} {>rflags} {rsize} {duration}"', { clock });
  const stream = new ReplyStream([].values());
  await running.outcome({ name: "example.org.", type: "AXFR", transport: "tcp", next: () => stream });
  assert.deepEqual(running.log.lines, []);
  clock.advance(2_000);
  stream.sentOctets = 70_000;
  stream.flags = Flag.AA;
  stream.end();
  stream.end();
  assert.deepEqual(running.log.lines, ["[INFO] AXFR NOERROR qr,aa,rd 70000 2s"]);
});

test("a dropped query has no rcode, no flags and no size", async () => {
  assert.deepEqual(await linesOf('log . "{type} {rcode} {>rflags} {rsize} {duration}"', () => DROPPED), [
    "[INFO] A - - 0 0s",
  ]);
});

test("type and class of the answer are metadata", async () => {
  for (const [text, next, expected] of [
    ['log . "{/log/type} {/log/class}"', NXDOMAIN, "NXDOMAIN denial"],
    ['log . "{/log/type} {/log/class}"', SUCCESS, "NOERROR success"],
    ['log . "{/log/type} {/log/class}" {\n class error\n}', () => DROPPED, "OTHERERROR error"],
  ] as const) {
    const running = PluginTest.of(log, text);
    const query = running.query({ name: "example.org." });
    query.metadata = new Map();
    await running.chain(next)(query);
    assert.deepEqual(running.log.lines, [`[INFO] ${expected}`]);
  }
});

test("nothing in a query or a label can end the line", async () => {
  const running = PluginTest.of(log, 'log . "{name} {/x/y}"');
  const query = running.query({ name: "a\\010[INFO]\\032forged.example.", opcode: Opcode.QUERY });
  query.metadata = new Map([["x/y", "one\n[INFO] two"]]);
  await running.chain(SUCCESS)(query);
  assert.deepEqual(running.log.lines, ["[INFO] a\\010[info]\\032forged.example. one\\n[INFO] two"]);
});

for (const [text, warning, lines] of [
  ['log "{type} {name}"', /2:5: warning: a single argument is a name[\s\S]*log \. "\{type\} \{name\}"/, 0],
  ["log {common}", /warning: a single argument is a name, not a format/, 0],
  ['log . "x {json}"', /2:7: warning: '\{json\}' is a complete format/, 1],
  [
    'log . "{remote} {namee}"',
    /2:17: warning: '\{namee\}' is not a placeholder[\s\S]*did you mean '\{name\}'/,
    1,
  ],
  ["log . exa..mple", /2:7: warning: 'exa\.\.mple' is not a name: it matches no query/, 1],
  [`log ${"a".repeat(64)}`, /is not a name: it matches no query/, 0],
] as const) {
  test(`warns about ${text.slice(0, 30)}, and starts`, async () => {
    assert.match(PluginTest.of(log, text).warnings.join("\n"), warning);
    assert.equal((await linesOf(text, SUCCESS)).length, lines);
  });
}

for (const [text, code, message] of [
  ["log {\n class\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'class'/],
  ["log {\n slower 5\n}", "PLUGIN_BAD_VALUE", /duration '5' has no unit/],
  ["log {\n class succes\n}", "PLUGIN_BAD_VALUE", /3:8: error: invalid Class: succes/],
  ["log {\n classes all\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'classes'[\s\S]*mean 'class'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(log, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
