import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import tls from "node:tls";
import {
  CloudDnsServer,
  type CloudRecordSet,
  FEDERATED_TOKEN,
  METADATA_TOKEN,
} from "../../../test/support/cloud-dns-server.ts";
import { GoogleTokens, SERVICE_ACCOUNT_TOKEN } from "../../../test/support/google-tokens.ts";
import { untilTime } from "../../../test/support/until-true.ts";
import { Rcode } from "../../dns/index.ts";
import { SetupError } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import clouddns from "./index.ts";

let server: CloudDnsServer;
let folder: string;
let running: PluginTest<unknown>[] = [];
const NAMES = [
  "GCE_METADATA_HOST",
  "GOOGLE_APPLICATION_CREDENTIALS",
  "METADATA_SERVER_DETECTION",
  "HOME",
  "HTTPS_PROXY",
];
const environment = NAMES.map((name) => [name, process.env[name]] as const);

beforeEach(async () => {
  server = await CloudDnsServer.start();
  server.zones.set("p/z", ZONE);
  folder = mkdtempSync(join(tmpdir(), "portolan-clouddns-"));
  writeFileSync(join(folder, "jwt"), "jwt");
  writeFileSync(join(folder, "key.json"), server.credentials(join(folder, "jwt")));
  for (const name of NAMES) delete process.env[name];
  process.env.HOME = folder;
});
afterEach(async () => {
  for (const each of running) await each.stop();
  running = [];
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
  for (const [name, value] of environment) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

const SOA = "ns-cloud-a1.googledomains.com. cloud-dns-hostmaster.google.com. 7 21600 3600 259200 300";
const ZONE: readonly CloudRecordSet[] = [
  { name: "example.org.", type: "SOA", ttl: 21_600, rrdatas: [SOA] },
  { name: "example.org.", type: "NS", ttl: 21_600, rrdatas: ["ns-cloud-a1.googledomains.com."] },
  { name: "www.example.org.", type: "A", ttl: 300, rrdatas: ["192.0.2.1", "192.0.2.2"] },
  { name: "www.example.org.", type: "AAAA", ttl: 300, rrdatas: ["2001:db8::1"] },
  { name: "alias.example.org.", type: "CNAME", ttl: 300, rrdatas: ["www.example.org."] },
  { name: "example.org.", type: "MX", ttl: 300, rrdatas: ["10 mail.example.org."] },
  { name: "txt.example.org.", type: "TXT", ttl: 300, rrdatas: ['"one" "two"'] },
  { name: "_sip._tcp.example.org.", type: "SRV", ttl: 300, rrdatas: ["1 2 5060 www.example.org."] },
  { name: "caa.example.org.", type: "CAA", ttl: 300, rrdatas: ['0 issue "ca.example.net"'] },
  { name: "*.wild.example.org.", type: "A", ttl: 300, rrdatas: ["192.0.2.3"] },
  { name: "bad.example.org.", type: "A", ttl: 300, rrdatas: ["192.0.2.300"] },
];

function make(options = `credentials ${join(folder, "key.json")}`, zones = "example.org.:p:z") {
  const test = PluginTest.of(clouddns, `clouddns ${zones} {\nendpoint ${server.url}\n${options}\n}`);
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
    ["example.org.", "SOA", [`example.org. 21600 IN SOA ${SOA}`]],
    ["example.org.", "NS", ["example.org. 21600 IN NS ns-cloud-a1.googledomains.com."]],
    ["txt.example.org.", "TXT", ['txt.example.org. 300 IN TXT "one" "two"']],
    ["_sip._tcp.example.org.", "SRV", ["_sip._tcp.example.org. 300 IN SRV 1 2 5060 www.example.org."]],
    ["caa.example.org.", "CAA", ['caa.example.org. 300 IN CAA 0 issue "ca.example.net"']],
    ["any.wild.example.org.", "A", ["any.wild.example.org. 300 IN A 192.0.2.3"]],
  ] as const) {
    assert.deepEqual((await test.ask({ name, type })).answer.toSorted(), [...answer].toSorted());
  }
  assert.equal((await test.ask({ name: "bad.example.org." })).rcode, Rcode.NXDOMAIN);
  assert.equal(
    test.log.lines.filter((line) => line.includes("A record of bad.example.org. is skipped")).length,
    1,
  );
});

test("applies changes, keeps its zone through faults, and logs a fault once", async () => {
  const test = await serve();
  server.tokens = new Set();
  const complaints = () =>
    test.log.lines.filter((line) => line.includes("Failed to update zone example.org."));
  await soon(test, () => complaints().length > 0);
  const { length } = server.users;
  await soon(test, () => server.users.length > length + 1);
  assert.equal(complaints().length, 1);
  assert.match(complaints()[0] ?? "", /401: UNAUTHENTICATED: Request had invalid credentials/);
  assert.equal((await test.ask({ name: "www.example.org." })).answer.length, 2);
  server.tokens = new Set([FEDERATED_TOKEN]);
  server.zones.set("p/z", ZONE.slice(0, 2));
  await soon(test, async () => (await test.ask({ name: "www.example.org." })).rcode === Rcode.NXDOMAIN);
});

test("signs in with a file from the Corefile, one from the environment, and the metadata server", async () => {
  await serve();
  assert.equal(server.users.at(-1), FEDERATED_TOKEN);
  process.env.GOOGLE_APPLICATION_CREDENTIALS = join(folder, "key.json");
  await serve("");
  assert.equal(server.users.at(-1), FEDERATED_TOKEN);
  delete process.env.GOOGLE_APPLICATION_CREDENTIALS;
  process.env.GCE_METADATA_HOST = server.host;
  process.env.METADATA_SERVER_DETECTION = "assume-present";
  await serve("");
  assert.equal(server.users.at(-1), METADATA_TOKEN);
});

test("signs in with the key of a service account", async () => {
  await using tokens = await GoogleTokens.start();
  const authorities = tls.getCACertificates("default");
  try {
    tls.setDefaultCACertificates([...authorities, tokens.authority]);
    process.env.HTTPS_PROXY = tokens.proxy;
    server.tokens = new Set([SERVICE_ACCOUNT_TOKEN]);
    writeFileSync(join(folder, "key.json"), tokens.credentials("dns@p.iam.gserviceaccount.com"));
    await serve();
    assert.deepEqual(tokens.users, ["dns@p.iam.gserviceaccount.com"]);
    assert.equal(server.users.at(-1), SERVICE_ACCOUNT_TOKEN);
  } finally {
    tls.setDefaultCACertificates(authorities);
  }
});

test("uses credentials that were written to the file since", async () => {
  const test = await serve();
  server.tokens = new Set(["second"]);
  writeFileSync(join(folder, "jwt"), "revoked");
  await soon(test, () => test.log.lines.some((line) => line.includes("invalid_grant")));
  server.federatedToken = "second";
  writeFileSync(join(folder, "jwt2"), "jwt");
  writeFileSync(join(folder, "key.json"), server.credentials(join(folder, "jwt2")));
  await soon(test, () => test.log.lines.some((line) => line.includes("is available again")));
  assert.equal(server.users.at(-1), "second");
});

for (const [option, interval] of [
  ["", 60_000],
  ["refresh 10", 10_000],
  ["refresh 3m", 180_000],
] as const) {
  test(`lists the zone again after ${interval / 1000} s with '${option}'`, async () => {
    const test = await serve(`${`credentials ${join(folder, "key.json")}`}\n${option}`);
    const isGone = async () => (await test.ask({ name: "www.example.org." })).rcode === Rcode.NXDOMAIN;
    server.zones.set("p/z", ZONE.slice(0, 2));
    await test.clock.settle(interval - 5_000);
    assert.ok(!(await isGone()));
    await soon(test, isGone);
    assert.ok(test.clock.now() < interval + 30_000);
  });
}

test("signs in again when a valid token is rejected", async () => {
  const test = await serve();
  server.federatedToken = "second";
  server.tokens = new Set(["second"]);
  server.zones.set("p/z", ZONE.slice(0, 2));
  await soon(test, async () => (await test.ask({ name: "www.example.org." })).rcode === Rcode.NXDOMAIN);
  assert.ok(!test.log.lines.some((line) => line.includes("Failed to update zone")));
});

for (const [title, prepare, message] of [
  [
    "a missing right",
    () => server.faults.push(403),
    /^failed to initialize clouddns plugin: GET http:\S+: 403: PERMISSION_DENIED: Permission 'dns\.resourceRecordSets\.list' denied on resource 'projects\/p'\.$/,
  ],
  [
    "an unknown zone",
    () => server.zones.clear(),
    /404: The 'parameters\.managedZone' resource named 'z' does not exist\.$/,
  ],
  [
    "a token that is refused",
    () => writeFileSync(join(folder, "jwt"), "other"),
    /failed to initialize clouddns plugin: sign-in: .*invalid_grant/,
  ],
  [
    "a file of another type",
    () => writeFileSync(join(folder, "key.json"), '{"type":"x"}'),
    /^invalid credentials file ".*key\.json": its type is "x", not one of service_account/,
  ],
  [
    "a file that is no JSON",
    () => writeFileSync(join(folder, "key.json"), "x"),
    /^invalid credentials file ".*": it is not JSON$/,
  ],
  [
    "no file",
    () => rmSync(join(folder, "key.json")),
    /^invalid credentials file ".*": no such file or directory$/,
  ],
] as const) {
  test(`refuses to start with ${title}`, async () => {
    prepare();
    await assert.rejects(
      make().start(),
      (error) => error instanceof SetupError && message.test(error.message),
    );
  });
}

for (const [text, message] of [
  ["clouddns", /unexpected line ending/],
  ["clouddns example.org.:p:z {\nrefresh 0\n}", /refresh interval must be greater than 0: '0'/],
  ["clouddns example.org.:p:z {\nrefresh x\n}", /refresh interval must be greater than 0: 'x'/],
  ["clouddns example.org.", /invalid zone "example\.org\."/],
  ["clouddns example.org.:p", /invalid zone "example\.org\.:p"/],
  ["clouddns example.org.:p:z example.org.:p:z", /conflict zone "example\.org\.:p:z"/],
  ["clouddns example.org.:p:z {\ncredentials a b\n}", /unexpected line ending/],
  ["clouddns example.org.:p:z {\nfoo\n}", /unknown property 'foo'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(clouddns, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
