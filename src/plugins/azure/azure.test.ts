import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, beforeEach, test } from "node:test";
import tls from "node:tls";
import { type AzureRecordSet, AzureServer } from "../../../test/support/azure-server.ts";
import { untilTime } from "../../../test/support/until-true.ts";
import { Rcode } from "../../dns/index.ts";
import type { Machine } from "../../plugin/contract/site.ts";
import { SetupError } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import azure from "./index.ts";

let server: AzureServer;
let running: PluginTest<unknown>[] = [];
const authorities = tls.getCACertificates("default");
const folder = mkdtempSync(join(tmpdir(), "portolan-azure-"));
after(() => {
  tls.setDefaultCACertificates(authorities);
  rmSync(folder, { recursive: true });
});

beforeEach(async () => {
  server = await AzureServer.start();
  tls.setDefaultCACertificates([...authorities, server.authority]);
  server.zones.set(PUBLIC, ZONE);
});
afterEach(async () => {
  for (const each of running) await each.stop();
  running = [];
  await server[Symbol.asyncDispose]();
});

const NETWORK = "/subscriptions/s1/resourceGroups/g/providers/Microsoft.Network";
const PUBLIC = `${NETWORK}/dnsZones/example.org/all`;
const PRIVATE = `${NETWORK}/privateDnsZones/example.org/ALL`;

function set(name: string, type: string, fields: Readonly<Record<string, unknown>>): AzureRecordSet {
  return { name, type: `Microsoft.Network/dnszones/${type}`, properties: { TTL: 300, ...fields } };
}

const SOA = set("@", "SOA", {
  SOARecord: {
    host: "ns1-01.azure-dns.com.",
    email: "azuredns-hostmaster.microsoft.com",
    serialNumber: 1,
    refreshTime: 3600,
    retryTime: 300,
    expireTime: 2_419_200,
    minimumTTL: 300,
  },
});
const ZONE: readonly AzureRecordSet[] = [
  SOA,
  set("@", "NS", { NSRecords: [{ nsdname: "ns1-01.azure-dns.com." }] }),
  set("www", "A", { ARecords: [{ ipv4Address: "192.0.2.1" }, { ipv4Address: "192.0.2.2" }] }),
  set("www", "AAAA", { AAAARecords: [{ ipv6Address: "2001:db8::1" }] }),
  set("alias", "CNAME", { CNAMERecord: { cname: "www.example.org" } }),
  set("@", "MX", { MXRecords: [{ preference: 10, exchange: "mail.example.org" }] }),
  set("txt", "TXT", { TXTRecords: [{ value: ["one", "two"] }] }),
  set("_sip._tcp", "SRV", {
    SRVRecords: [{ priority: 1, weight: 2, port: 5060, target: "www.example.org" }],
  }),
  set("ptr", "PTR", { PTRRecords: [{ ptrdname: "www.example.org" }] }),
  set("caa", "CAA", { caaRecords: [{ flags: 0, tag: "issue", value: "ca.example.net" }] }),
  set("*.wild", "A", { ARecords: [{ ipv4Address: "192.0.2.3" }] }),
  set("bad", "A", { ARecords: [{ ipv4Address: "192.0.2.300" }, {}] }),
];

const SIGN_IN = "tenant t1\nclient c1\nsecret s3cret\nsubscription s1";

function make(options = SIGN_IN, environment: Record<string, string> = {}) {
  const machine: Machine = {
    hostname: "node",
    environment: { AZURE_AUTHORITY_HOST: server.url, ...environment },
    parallelism: 1,
    descriptors: 1024,
    interfaceAddresses: () => undefined,
    addresses: () => [],
  };
  const text = `azure g:example.org {\nendpoint ${server.url}\n${options}\n}`;
  const test = PluginTest.of(azure, text, { site: { machine } });
  running.push(test);
  return test;
}

async function serve(options?: string) {
  const test = make(options);
  await test.start();
  return test;
}

/** Advances time until the condition holds. */
const soon = (test: PluginTest<unknown>, isSo: () => boolean | Promise<boolean>): Promise<void> =>
  untilTime(test, 1_000, isSo);

test("answers with records of every type, paged, and skips malformed records", async () => {
  const test = await serve();
  for (const [name, type, answer] of [
    ["www.example.org.", "A", ["www.example.org. 300 IN A 192.0.2.1", "www.example.org. 300 IN A 192.0.2.2"]],
    ["www.example.org.", "AAAA", ["www.example.org. 300 IN AAAA 2001:db8::1"]],
    ["alias.example.org.", "CNAME", ["alias.example.org. 300 IN CNAME www.example.org."]],
    ["example.org.", "MX", ["example.org. 300 IN MX 10 mail.example.org."]],
    ["example.org.", "NS", ["example.org. 300 IN NS ns1-01.azure-dns.com."]],
    [
      "example.org.",
      "SOA",
      [
        "example.org. 300 IN SOA ns1-01.azure-dns.com. azuredns-hostmaster.microsoft.com. 1 3600 300 2419200 300",
      ],
    ],
    ["txt.example.org.", "TXT", ['txt.example.org. 300 IN TXT "one" "two"']],
    ["_sip._tcp.example.org.", "SRV", ["_sip._tcp.example.org. 300 IN SRV 1 2 5060 www.example.org."]],
    ["ptr.example.org.", "PTR", ["ptr.example.org. 300 IN PTR www.example.org."]],
    ["caa.example.org.", "CAA", ['caa.example.org. 300 IN CAA 0 issue "ca.example.net"']],
    ["any.wild.example.org.", "A", ["any.wild.example.org. 300 IN A 192.0.2.3"]],
  ] as const) {
    assert.deepEqual((await test.ask({ name, type })).answer.toSorted(), [...answer].toSorted());
  }
  assert.equal((await test.ask({ name: "bad.example.org." })).rcode, Rcode.NXDOMAIN);
  assert.equal(
    test.log.lines.filter((line) => line.includes("A record of bad.example.org. is skipped")).length,
    2,
  );
});

test("serves private zones, whose fields begin in lower case", async () => {
  const soa = { ...SOA, properties: { ttl: 60, soaRecord: SOA.properties.SOARecord } };
  const a = {
    name: "db",
    type: "Microsoft.Network/privateDnsZones/A",
    properties: { ttl: 10, aRecords: [{ ipv4Address: "10.0.0.1" }] },
  };
  server.zones.set(PRIVATE, [soa, a]);
  const test = await serve(`${SIGN_IN}\naccess private`);
  assert.deepEqual((await test.ask({ name: "db.example.org." })).answer, [
    "db.example.org. 10 IN A 10.0.0.1",
  ]);
});

test("keeps its zone through faults, and applies changes", async () => {
  const test = await serve();
  server.faults.push(...Array<number>(40).fill(403));
  await soon(test, () => test.log.lines.some((line) => line.includes("Failed to update zone example.org.")));
  assert.equal((await test.ask({ name: "www.example.org." })).answer.length, 2);
  server.faults.length = 0;
  server.zones.set(PUBLIC, [SOA]);
  await soon(test, async () => (await test.ask({ name: "www.example.org." })).rcode === Rcode.NXDOMAIN);
});

test("signs in with a secret from the Corefile", async () => {
  await serve();
  assert.match(server.signIns.at(-1) ?? "", /^c1 s3cret https:\/\/management\.azure\.com\/\.default/);
});

for (const [title, variables, options, signIn] of [
  [
    "a secret of the environment",
    () => ({ AZURE_TENANT_ID: "t1", AZURE_CLIENT_ID: "c3", AZURE_CLIENT_SECRET: "s3cret" }),
    "",
    /^c3 s3cret /,
  ],
  [
    "a workload identity",
    () => ({ AZURE_TENANT_ID: "t1", AZURE_CLIENT_ID: "c2", AZURE_FEDERATED_TOKEN_FILE: writeToken() }),
    "",
    /^c2 jwt /,
  ],
  [
    "the managed identity that the Corefile names",
    () => ({ AZURE_POD_IDENTITY_AUTHORITY_HOST: server.url }),
    "client c4\n",
    /^managed c4 https:\/\/management\.azure\.com$/,
  ],
] as const) {
  test(`signs in with ${title}`, async () => {
    const names = Object.entries({ ...variables(), AZURE_AUTHORITY_HOST: server.url });
    const before = names.map(([name]) => [name, process.env[name]] as const);
    try {
      for (const [name, value] of names) process.env[name] = value;
      await make(`${options}subscription s1`, Object.fromEntries(names)).start();
      assert.match(server.signIns.at(-1) ?? "", signIn);
    } finally {
      for (const [name, value] of before) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
    }
  });
}

for (const [option, interval] of [
  ["", 60_000],
  ["refresh 10", 10_000],
  ["refresh 3m", 180_000],
] as const) {
  test(`lists the zone again after ${interval / 1000} s with '${option}'`, async () => {
    const test = await serve(`${SIGN_IN}\n${option}`);
    const isGone = async () => (await test.ask({ name: "www.example.org." })).rcode === Rcode.NXDOMAIN;
    server.zones.set(PUBLIC, [SOA]);
    await test.clock.settle(interval - 5_000);
    assert.ok(!(await isGone()));
    await soon(test, isGone);
    assert.ok(test.clock.now() < interval + 30_000);
  });
}

test("signs in again when a valid token is rejected", async () => {
  const test = await serve();
  server.token = "second";
  server.zones.set(PUBLIC, [SOA]);
  await soon(test, async () => (await test.ask({ name: "www.example.org." })).rcode === Rcode.NXDOMAIN);
  assert.ok(!test.log.lines.some((line) => line.includes("Failed to update zone")));
});

function writeToken(): string {
  const file = join(folder, "jwt");
  writeFileSync(file, "jwt");
  return file;
}

for (const [title, options, prepare, message] of [
  [
    "a missing right",
    SIGN_IN,
    () => server.faults.push(403),
    /Failed to update zone example\.org\.: GET https:\S+: 403: AuthorizationFailed: The client 'c1' .* action 'Microsoft\.Network\/dnsZones\/all\/read' over scope '\/subscriptions\/s1'\./,
  ],
  [
    "an unknown zone",
    SIGN_IN,
    () => server.zones.clear(),
    /404: ResourceNotFound: The resource was not found\./,
  ],
  ["a wrong secret", SIGN_IN.replace("s3cret", "x"), () => undefined, /sign-in: .*AADSTS7000215/],
] as const) {
  test(`starts with ${title}, and logs the reason`, async () => {
    prepare();
    const test = make(options);
    let isStarted = false;
    const start = test.start().then(() => {
      isStarted = true;
    });
    await soon(test, () => isStarted);
    await start;
    assert.match(test.log.lines.join("\n"), message);
  });
}

test("fails queries until a zone is known, and then answers from the zone", async () => {
  server.zones.clear();
  const test = make();
  const start = test.start();
  await soon(test, () => test.log.lines.some((line) => line.includes("404: ResourceNotFound")));
  const question = { name: "www.example.org.", type: "A" };
  assert.equal((await test.outcome(question)).kind, "failed");
  server.zones.set(PUBLIC, ZONE);
  await soon(test, async () => (await test.outcome(question)).kind === "reply");
  await start;
});

test("refuses to start without a subscription", async () => {
  await assert.rejects(
    make("tenant t1").start(),
    (error) => error instanceof SetupError && /^azure: no subscription/.test(error.message),
  );
});

for (const [text, message] of [
  ["azure", /unexpected line ending/],
  ["azure g:example.org {\nrefresh 0\n}", /refresh interval must be greater than 0: '0'/],
  ["azure g:example.org {\nrefresh x\n}", /refresh interval must be greater than 0: 'x'/],
  ["azure example.org", /invalid resource group\/zone: "example\.org"/],
  ["azure g:example.org g:example.org", /conflicting zone: "g:example\.org"/],
  ["azure g:example.org {\naccess x\n}", /invalid access value: can be public\/private, found: x/],
  ["azure g:example.org {\nenvironment x\n}", /cannot set azure environment: .*"x"/],
  ["azure g:example.org {\nfoo\n}", /unknown property 'foo'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(azure, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
