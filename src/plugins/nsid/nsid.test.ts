import assert from "node:assert/strict";
import { test } from "node:test";
import { type Edns, type EdnsOption, EdnsOptionCode, findOption, Rcode } from "../../dns/index.ts";
import type { Next, Site } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import nsid from "./index.ts";

const ASKED: EdnsOption = { code: EdnsOptionCode.NSID, data: new Uint8Array() };
const COOKIE: EdnsOption = { code: EdnsOptionCode.COOKIE, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) };

async function identify(text: string, edns: Partial<Edns> | undefined, next: Next, site: Partial<Site> = {}) {
  const running = PluginTest.of(nsid, text, { site });
  return (await running.ask({ name: "example.org.", ...(edns !== undefined && { edns }), next })).reply.edns;
}

function identifierIn(edns: Edns | undefined): string | undefined {
  const option = findOption(edns?.options ?? [], EdnsOptionCode.NSID);
  return option === undefined ? undefined : Buffer.from(option.data).toString();
}

for (const [text, expected] of [
  ["nsid", "test-host"],
  ["nsid portolan-1", "portolan-1"],
  ["nsid rack 7  slot 3", "rack 7 slot 3"],
  ['nsid "two  spaces"', "two  spaces"],
  ["nsid köln", "köln"],
] as const) {
  test(`${text} answers ${expected}`, async () => {
    const edns = await identify(text, { options: [ASKED] }, answering({}));
    assert.equal(identifierIn(edns), expected);
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
  const edns = await identify("nsid", { options: [ASKED] }, answering({}), { machine });
  assert.equal(identifierIn(edns), "localhost");
});

test("makes an OPT with the size of the client and DO when the reply has none", async () => {
  const edns = await identify("nsid x", { options: [COOKIE, ASKED], udpSize: 4000 }, answering({}));
  assert.deepEqual(edns, {
    udpSize: 4000,
    version: 0,
    dnssecOk: true,
    options: [{ code: EdnsOptionCode.NSID, data: Buffer.from("x") }],
  });
});

test("adds to the OPT of the reply, and replaces another identifier", async () => {
  const upstream: Edns = {
    udpSize: 1400,
    version: 0,
    dnssecOk: false,
    options: [{ code: EdnsOptionCode.NSID, data: Buffer.from("upstream") }, COOKIE],
  };
  const edns = await identify("nsid x", { options: [ASKED] }, answering({ edns: upstream }));
  assert.deepEqual(edns, {
    udpSize: 1400,
    version: 0,
    dnssecOk: false,
    options: [COOKIE, { code: EdnsOptionCode.NSID, data: Buffer.from("x") }],
  });
  assert.equal(identifierIn(upstream), "upstream");
});

test("adds nothing without the option in the query", async () => {
  assert.equal(await identify("nsid x", undefined, answering({})), undefined);
  assert.equal(await identify("nsid x", {}, answering({})), undefined);
  assert.equal(await identify("nsid x", { options: [COOKIE] }, answering({})), undefined);
});

test("waits for late answers, and passes on failures", async () => {
  const later: Next = (query) => Promise.resolve(query.reply({}));
  assert.equal(identifierIn(await identify("nsid x", { options: [ASKED] }, later)), "x");
  const outcome = await PluginTest.of(nsid, "nsid x").outcome({
    name: "example.org.",
    edns: { options: [ASKED] },
    next: (query) => query.fail(Rcode.REFUSED),
  });
  assert.deepEqual([outcome.kind, outcome.kind === "failed" && outcome.rcode], ["failed", Rcode.REFUSED]);
});

for (const [text, code, message] of [
  ["nsid a\nnsid b", "PLUGIN_REPEATED", /can only be used once per Server Block/],
  ["nsid {\n name x\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'name'/],
  [
    `nsid ${"a".repeat(255)} b`,
    "PLUGIN_BAD_VALUE",
    /2:1: error: the identifier is too long: 257 octets[\s\S]*at most 255 octets/,
  ],
] as const) {
  test(`refuses ${JSON.stringify(text.slice(0, 30))}`, () => {
    assert.throws(
      () => PluginTest.of(nsid, text),
      (error) => error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
    );
  });
}
