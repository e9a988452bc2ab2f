import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode, RecordClass } from "../../dns/index.ts";
import { answering, ConfigRefused, PluginTest, type QuestionOptions, records } from "../../plugin/testing.ts";
import chaos from "./index.ts";

const CH: Partial<QuestionOptions> = { type: "TXT", class: RecordClass.CH };

for (const [text, name, expected] of [
  ["chaos", "version.bind.", ['version.bind. 0 CH TXT "Portolan-0.0.0-test"']],
  ["chaos", "Version.Server.", ['Version.Server. 0 CH TXT "Portolan-0.0.0-test"']],
  ["chaos", "hostname.bind.", ['hostname.bind. 0 CH TXT "test-host"']],
  ["chaos", "id.server.", ['id.server. 0 CH TXT "test-host"']],
  ["chaos", "authors.bind.", ['authors.bind. 0 CH TXT "Portolan authors"']],
  ["chaos none-of-your-business", "version.bind.", ['version.bind. 0 CH TXT "none-of-your-business"']],
  ["chaos v1", "authors.bind.", ['authors.bind. 0 CH TXT "Portolan authors"']],
  ['chaos "DNS 1" Ada', "version.server.", ['version.server. 0 CH TXT "DNS 1"']],
  ["chaos v1 Ada", "authors.bind.", ['authors.bind. 0 CH TXT "Ada"']],
  ["chaos v1 Zoë", "authors.bind.", ['authors.bind. 0 CH TXT "Zo\\195\\171"']],
  ["chaos v1\nchaos v2", "version.bind.", ['version.bind. 0 CH TXT "v1"']],
] as const) {
  test(`${JSON.stringify(text)}: ${name}`, async () => {
    const answer = await PluginTest.of(chaos, text).ask({ name, ...CH });
    assert.deepEqual(answer.answer, expected);
    assert.equal(answer.rcode, Rcode.NOERROR);
    assert.equal(answer.reply.authoritative, false);
  });
}

test("authors are in random order, without duplicates", async () => {
  const numbers = [0.99, 0, 0.5, 0.4, 0.7, 0];
  const random = { fraction: () => numbers.shift() ?? 0, unpredictable: () => 0 };
  const running = PluginTest.of(chaos, "chaos v1 Ada Bob Ada Cleo", { site: { random } });
  const authors = async () =>
    (await running.ask({ name: "authors.bind.", ...CH })).answer.map((line) => line.split('"')[1]);
  assert.deepEqual(await authors(), ["Cleo", "Ada", "Bob"]);
  assert.deepEqual(await authors(), ["Bob", "Cleo", "Ada"]);
});

for (const [text, name] of [
  [`chaos ${"v".repeat(300)}`, "version.bind."],
  [`chaos ${"v".repeat(300)} Ada`, "version.bind."],
  [`chaos v1 ${"a".repeat(300)}`, "authors.bind."],
] as const) {
  test(`truncates a text of ${name} to one string of TXT`, async () => {
    const answer = await PluginTest.of(chaos, text).ask({ name, ...CH });
    assert.equal(answer.answer[0]?.split('"')[1]?.length, 255);
    assert.ok(answer.reply.encoded.answerCount === 1);
  });
}

for (const question of [
  { name: "version.bind.", type: "TXT", class: RecordClass.IN },
  { name: "version.bind.", type: "TXT", class: RecordClass.HS },
  { name: "version.bind.", type: "A", class: RecordClass.CH },
  { name: "version.bind.", type: "ANY", class: RecordClass.CH },
  { name: "a.version.bind.", type: "TXT", class: RecordClass.CH },
  { name: "bind.", type: "TXT", class: RecordClass.CH },
]) {
  test(`passes on ${question.name} ${question.class} ${question.type}`, async () => {
    const next = answering({ answer: records("elsewhere. 1 IN A 192.0.2.1") });
    const answer = await PluginTest.of(chaos, "chaos").ask({ ...question, next });
    assert.deepEqual(answer.answer, ["elsewhere. 1 IN A 192.0.2.1"]);
  });
}

test("a machine without a name is localhost", async () => {
  const machine = {
    hostname: "",
    interfaceAddresses: () => [],
    addresses: () => [],
    environment: {},
    parallelism: 1,
    descriptors: 1024,
  };
  const answer = await PluginTest.of(chaos, "chaos", { site: { machine } }).ask({
    name: "id.server.",
    ...CH,
  });
  assert.deepEqual(answer.answer, ['id.server. 0 CH TXT "localhost"']);
});

test("warns about a second line", () => {
  assert.match(
    PluginTest.of(chaos, "chaos v1\nchaos v2").warnings.join("\n"),
    /2:1: warning: 'chaos' appears 2 times: only the first counts/,
  );
});

test("refuses a block", () => {
  assert.throws(
    () => PluginTest.of(chaos, "chaos {\n version 1\n}"),
    (error) =>
      error instanceof ConfigRefused &&
      error.codes.includes("PLUGIN_UNKNOWN_PROPERTY") &&
      error.message.includes("unknown property 'version'"),
  );
});
