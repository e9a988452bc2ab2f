import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode, RecordClass } from "../../dns/index.ts";
import { answering, ConfigRefused, PluginTest, records } from "../../plugin/testing.ts";
import local from "./index.ts";

const SOA_DATA = "604800 IN SOA localhost. root.localhost. 1 0 0 0 604800";

interface Expected {
  readonly rcode?: number;
  readonly answer?: readonly string[];
  readonly authority?: readonly string[];
}

const ADDRESS = (name: string): Expected => ({ answer: [`${name} 604800 IN A 127.0.0.1`] });
const NO_DATA = (apex: string): Expected => ({ authority: [`${apex} ${SOA_DATA}`] });
const NO_NAME = (apex: string): Expected => ({ ...NO_DATA(apex), rcode: Rcode.NXDOMAIN });

for (const [name, type, expected] of [
  ["localhost.", "A", ADDRESS("localhost.")],
  ["LocalHost.", "A", ADDRESS("LocalHost.")],
  ["localhost.", "AAAA", { answer: ["localhost. 604800 IN AAAA ::1"] }],
  ["localhost.", "SOA", { answer: [`localhost. ${SOA_DATA}`] }],
  ["localhost.", "NS", { answer: ["localhost. 604800 IN NS localhost."] }],
  ["localhost.", "MX", NO_DATA("localhost.")],
  ["localhost.", "PTR", NO_DATA("localhost.")],
  ["Localhost.Example.net.", "A", ADDRESS("Localhost.Example.net.")],
  ["localhost.example.net.", "AAAA", { answer: ["localhost.example.net. 604800 IN AAAA ::1"] }],
  ["localhost.example.net.", "TXT", NO_DATA("localhost.example.net.")],
  ["localhost.example.net.", "SOA", NO_DATA("localhost.example.net.")],
  ["app.localhost.", "A", ADDRESS("app.localhost.")],
  ["a.b.localhost.", "AAAA", { answer: ["a.b.localhost. 604800 IN AAAA ::1"] }],
  ["app.localhost.", "NS", NO_DATA("app.localhost.")],
  ["localhost.localhost.", "A", ADDRESS("localhost.localhost.")],
  ["0.in-addr.arpa.", "SOA", { answer: [`0.in-addr.arpa. ${SOA_DATA}`] }],
  ["127.in-addr.arpa.", "NS", { answer: ["127.in-addr.arpa. 604800 IN NS localhost."] }],
  ["255.in-addr.arpa.", "A", NO_DATA("255.in-addr.arpa.")],
  ["127.IN-ADDR.arpa.", "PTR", NO_DATA("127.IN-ADDR.arpa.")],
  ["1.0.0.127.in-addr.arpa.", "PTR", { answer: ["1.0.0.127.in-addr.arpa. 604800 IN PTR localhost."] }],
  ["1.0.0.127.in-addr.arpa.", "A", NO_DATA("127.in-addr.arpa.")],
  ["1.0.0.127.In-Addr.arpa.", "SOA", NO_DATA("127.In-Addr.arpa.")],
  ["2.0.0.127.in-addr.arpa.", "PTR", NO_NAME("127.in-addr.arpa.")],
  ["0.0.127.in-addr.arpa.", "NS", NO_NAME("127.in-addr.arpa.")],
  ["1.0.in-addr.arpa.", "PTR", NO_NAME("0.in-addr.arpa.")],
  ["255.255.255.255.in-addr.ARPA.", "PTR", NO_NAME("255.in-addr.ARPA.")],
] as const) {
  test(`${name} ${type}`, async () => {
    const answer = await PluginTest.of(local, "local").ask({ name, type });
    assert.deepEqual(
      { rcode: answer.rcode, answer: answer.answer, authority: answer.authority },
      { rcode: Rcode.NOERROR, answer: [], authority: [], ...expected },
    );
    assert.equal(answer.reply.authoritative, false);
    assert.deepEqual(answer.additional, []);
  });
}

const ELSEWHERE = answering({ answer: records("elsewhere. 1 IN A 192.0.2.1") });

for (const [text, name] of [
  ["local", "example.org."],
  ["local", "."],
  ["local", "localhosts.example.org."],
  ["local", "a.localhost.example.org."],
  ["local", "in-addr.arpa."],
  ["local", "1.in-addr.arpa."],
  ["local", "27.in-addr.arpa."],
  ["local", "local."],
  ["local {\n localhost_prefix off\n}", "localhost.example.org."],
] as const) {
  test(`${JSON.stringify(text)} passes ${name} on`, async () => {
    const answer = await PluginTest.of(local, text).ask({ name, next: ELSEWHERE });
    assert.deepEqual(answer.answer, ["elsewhere. 1 IN A 192.0.2.1"]);
  });
}

test("passes other classes on", async () => {
  const running = PluginTest.of(local, "local");
  const answer = await running.ask({ name: "localhost.", class: RecordClass.CH, next: ELSEWHERE });
  assert.deepEqual(answer.answer, ["elsewhere. 1 IN A 192.0.2.1"]);
});

test("localhost_prefix off passes names below localhost", async () => {
  const running = PluginTest.of(local, "local {\n localhost_prefix off\n}");
  assert.deepEqual((await running.ask({ name: "app.localhost." })).answer, ADDRESS("app.localhost.").answer);
  assert.deepEqual((await running.ask({ name: "localhost." })).answer, ADDRESS("localhost.").answer);
});

test("counts names longer than localhost", async () => {
  const running = PluginTest.of(local, "local {\n localhost_prefix on\n}");
  for (const name of ["localhost.", "localhost.example.org.", "a.localhost.", "1.0.0.127.in-addr.arpa."])
    await running.ask({ name });
  const { body } = await running.metrics.expose();
  assert.match(body, /^coredns_local_localhost_requests_total 2$/m);
});

for (const [text, code, message] of [
  ["local example.org", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'example\.org'/],
  ["local {\n localhost_prefix\n}", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending/],
  ["local {\n localhost_prefix yes\n}", "PLUGIN_BAD_VALUE", /unknown value 'yes'[\s\S]*one of on, off/],
  ["local {\n prefix on\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'prefix'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(local, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
