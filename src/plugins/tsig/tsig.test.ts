import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import {
  encodeMessage,
  makeQuery,
  Name,
  Rcode,
  RecordType,
  TsigError,
  TsigExchange,
  type TsigKey,
  tsigAlgorithm,
} from "../../dns/index.ts";
import { SetupError } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import tsig from "./index.ts";
import { parseSecretsFile, SecretsFileError } from "./secrets-file.ts";

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

test("reads keys in BIND's format, with comments and in any layout", () => {
  const keys = parseSecretsFile(`
    # one
    key "a.example" { algorithm hmac-sha512; secret "${SECRET}"; };
    // two
    key B { secret ${SECRET}; algorithm HMAC-SHA256-128; }; /* of
    them */ key c. {
      algorithm hmac-sha1;
      secret "${SECRET}";
    };`);
  assert.deepEqual(
    keys.map(({ name, algorithm, leastMacOctets }) => [
      name.toString(),
      algorithm.name.toString(),
      leastMacOctets,
    ]),
    [
      ["a.example.", "hmac-sha512.", undefined],
      ["b.", "hmac-sha256.", 16],
      ["c.", "hmac-sha1.", undefined],
    ],
  );
});

for (const [text, line, message] of [
  ['\nkey "a" { };', 2, /the key a\. has no secret/],
  ['key "a" {\n secret "!";\n};', 2, /not base64/],
  [
    'key "a" {\n algorithm hmac-md5;\n secret "AAAA";\n};',
    2,
    /unknown algorithm 'hmac-md5': use one of hmac-sha1/,
  ],
  ['key "a" { algorithm hmac-sha256-64; secret "AAAA"; };', 1, /a MAC must have at least 128 bits/],
  ['key "a" {\n bogus x;\n};', 2, /unknown word 'bogus'/],
  ["key\n", 2, /the file ends where the name of the key should be/],
  ['key "a" { secret "AAAA" };', 1, /expected ';', found '}'/],
  ["options { };", 1, /expected 'key', found 'options'/],
] as const) {
  test(`refuses the file ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => parseSecretsFile(text),
      (error) => error instanceof SecretsFileError && error.line === line && message.test(error.message),
    );
  });
}

for (const [text, message] of [
  ["tsig {\n secret a\n}", /unexpected line ending after 'a'/],
  ["tsig {\n secret a AAAA\n secret A. BBBB\n}", /the key a\. has more than one secret/],
  ["tsig {\n secret a !!\n}", /the secret is not base64/],
  ["tsig {\n require\n}", /unexpected line ending after 'require'/],
  ["tsig {\n require FOO\n}", /'FOO' is not a record type/],
  ["tsig {\n require_opcode NOTIFI\n}", /'NOTIFI' is not an opcode/],
  ["tsig\ntsig", /once per Server Block/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(tsig, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}

test("an unreadable or invalid file prevents the start and is named", async () => {
  await assert.rejects(
    PluginTest.of(tsig, "tsig {\n secrets /nowhere/keys\n}").start(),
    (error) => error instanceof SetupError && error.message.includes("'secrets /nowhere/keys'"),
  );
  const folder = mkdtempSync(join(tmpdir(), "portolan-tsig-"));
  try {
    const file = join(folder, "keys");
    writeFileSync(file, 'key "a" {\n};\n');
    await assert.rejects(
      PluginTest.of(tsig, `tsig {\n secrets ${file}\n}`).start(),
      (error) => error instanceof SetupError && error.message === `${file}:1: the key a. has no secret`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("counts queries that must be signed but are not", async () => {
  const running = PluginTest.of(tsig, "tsig example.org {\n require A\n}");
  await running.start();
  const next = answering({});
  const refused = await running.ask({ name: "www.example.org.", next });
  assert.equal(refused.rcode, Rcode.REFUSED);
  for (const question of [
    { name: "www.example.org.", type: "TXT" },
    { name: "www.example.com.", type: "A" },
  ]) {
    assert.equal((await running.ask({ ...question, next })).rcode, Rcode.NOERROR);
  }
  const { body } = await running.metrics.expose();
  assert.match(body, /^portolan_tsig_queries_total\{result="missing"\} 1$/m);
});

const algorithm = tsigAlgorithm(Name.parse("hmac-sha256."));
assert.ok(algorithm !== undefined);
const KEY: TsigKey = { name: Name.parse("key."), secret: Buffer.from(SECRET, "base64"), algorithm };
const query = encodeMessage(makeQuery({ name: Name.parse("example."), type: RecordType.AXFR }, { id: 7 }));

test("a reply without a signature, or with that of another key, is rejected", () => {
  const exchange = new TsigExchange(KEY, () => 1_000_000);
  const signed = exchange.sign(query);
  assert.throws(() => exchange.verify(query), TsigError);
  // The query's own signature does not authenticate the answer.
  assert.throws(() => exchange.verify(signed), /does not verify/);
  assert.equal(exchange.isSettled, false);
});

test("no octets cause another kind of error on the asking side", () => {
  const exchange = new TsigExchange(KEY, () => 1_000_000);
  const signed = exchange.sign(query);
  for (let at = 0; at < signed.length; at++) {
    for (const bits of [0x01, 0x80, 0xff]) {
      const spoiled = signed.slice();
      spoiled[at] = (spoiled[at] ?? 0) ^ bits;
      assert.throws(() => exchange.verify(spoiled), TsigError);
    }
    assert.throws(() => exchange.verify(signed.subarray(0, at)), TsigError);
  }
});
