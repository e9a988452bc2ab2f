import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import {
  METADATA_KEY,
  POD_IDENTITY_KEY,
  type RecordSet,
  Route53Server,
  STATIC_KEY,
  WEB_IDENTITY_KEY,
} from "../../../test/support/route53-server.ts";
import { untilTime } from "../../../test/support/until-true.ts";
import { Rcode } from "../../dns/index.ts";
import { SetupError } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest, records } from "../../plugin/testing.ts";
import route53 from "./index.ts";

let server: Route53Server;
let folder: string;
let running: PluginTest<unknown>[] = [];
const environment = { ...process.env };

beforeEach(async () => {
  server = await Route53Server.start();
  server.zones.set("Z1", ZONE);
  folder = mkdtempSync(join(tmpdir(), "portolan-route53-"));
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  // Neither configuration of this machine's user, nor a metadata service.
  process.env.AWS_CONFIG_FILE = join(folder, "none");
  process.env.AWS_SHARED_CREDENTIALS_FILE = join(folder, "none");
  process.env.AWS_EC2_METADATA_DISABLED = "true";
  process.env.AWS_REGION = "eu-central-1";
});
afterEach(async () => {
  for (const each of running) await each.stop();
  running = [];
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  Object.assign(process.env, environment);
});

const SOA = "ns-1.awsdns-00.com. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400";
const HEAD: readonly RecordSet[] = [
  { name: "example.org.", type: "SOA", ttl: 900, values: [SOA] },
  { name: "example.org.", type: "NS", ttl: 172_800, values: ["ns-1.awsdns-00.com."] },
];
const ZONE: readonly RecordSet[] = [
  ...HEAD,
  { name: "www.example.org.", type: "A", values: ["192.0.2.1", "192.0.2.2"] },
  { name: "www.example.org.", type: "AAAA", values: ["2001:db8::1"] },
  { name: "alias.example.org.", type: "CNAME", values: ["www.example.org"] },
  { name: "example.org.", type: "MX", values: ["10 mail.example.org."] },
  { name: "txt.example.org.", type: "TXT", values: ['"one" "two; three"'] },
  { name: "_sip._tcp.example.org.", type: "SRV", values: ["1 2 5060 www.example.org."] },
  { name: "ptr.example.org.", type: "PTR", values: ["www.example.org."] },
  { name: "caa.example.org.", type: "CAA", values: ['0 issue "ca.example.net"'] },
  { name: "naptr.example.org.", type: "NAPTR", values: ['10 20 "u" "E2U+sip" "!^.*$!sip:a@b!" .'] },
  { name: "spf.example.org.", type: "SPF", values: ['"v=spf1 -all"'] },
  { name: "ds.example.org.", type: "DS", values: ["1 13 2 AABB"] },
  { name: "https.example.org.", type: "HTTPS", values: ["1 . alpn=h2"] },
  { name: "\\052.wild.example.org.", type: "A", values: ["192.0.2.3"] },
  { name: "sub.example.org.", type: "NS", values: ["ns.elsewhere.test."] },
  { name: "weighted.example.org.", type: "A", identifier: "a", weight: 1, values: ["192.0.2.4"] },
  { name: "weighted.example.org.", type: "A", identifier: "b", weight: 9, values: ["192.0.2.5"] },
  { name: "balancer.example.org.", type: "A", alias: "lb.amazonaws.com." },
];

const KEY = "aws_access_key AKIDSTATIC secret";

function make(zones = "example.org.:Z1", options = KEY): PluginTest<unknown> {
  const test = PluginTest.of(route53, `route53 ${zones} {\naws_endpoint ${server.url}\n${options}\n}`);
  running.push(test);
  return test;
}

async function serve(zones?: string, options?: string): Promise<PluginTest<unknown>> {
  const test = make(zones, options);
  await test.start();
  return test;
}

/** Advances time until the condition holds. */
const soon = (test: PluginTest<unknown>, isSo: () => boolean | Promise<boolean>): Promise<void> =>
  untilTime(test, 1_000, isSo);

for (const [name, type, answer] of [
  ["www", "A", ["www.example.org. 300 IN A 192.0.2.1", "www.example.org. 300 IN A 192.0.2.2"]],
  ["www", "AAAA", ["www.example.org. 300 IN AAAA 2001:db8::1"]],
  [
    "alias",
    "A",
    [
      "alias.example.org. 300 IN CNAME www.example.org.",
      "www.example.org. 300 IN A 192.0.2.1",
      "www.example.org. 300 IN A 192.0.2.2",
    ],
  ],
  ["", "MX", ["example.org. 300 IN MX 10 mail.example.org."]],
  ["", "SOA", [`example.org. 900 IN SOA ${SOA}`]],
  ["", "NS", ["example.org. 172800 IN NS ns-1.awsdns-00.com."]],
  ["txt", "TXT", ['txt.example.org. 300 IN TXT "one" "two; three"']],
  ["_sip._tcp", "SRV", ["_sip._tcp.example.org. 300 IN SRV 1 2 5060 www.example.org."]],
  ["ptr", "PTR", ["ptr.example.org. 300 IN PTR www.example.org."]],
  ["caa", "CAA", ['caa.example.org. 300 IN CAA 0 issue "ca.example.net"']],
  ["naptr", "NAPTR", ['naptr.example.org. 300 IN NAPTR 10 20 "u" "E2U+sip" "!^.*$!sip:a@b!" .']],
  ["spf", "SPF", ['spf.example.org. 300 IN SPF "v=spf1 -all"']],
  ["ds", "DS", ["ds.example.org. 300 IN DS 1 13 2 AABB"]],
  ["https", "HTTPS", ['https.example.org. 300 IN HTTPS 1 . alpn="h2"']],
  ["any.wild", "A", ["any.wild.example.org. 300 IN A 192.0.2.3"]],
  ["weighted", "A", ["weighted.example.org. 300 IN A 192.0.2.4", "weighted.example.org. 300 IN A 192.0.2.5"]],
] as const) {
  test(`answers ${type} of ${name === "" ? "the apex" : name}`, async () => {
    const reply = await (await serve()).ask({ name: `${name}${name === "" ? "" : "."}example.org.`, type });
    assert.equal(reply.rcode, Rcode.NOERROR);
    assert.ok((reply.reply.flags & 0x0400) !== 0, "AA");
    assert.deepEqual(reply.answer.toSorted(), [...answer].toSorted());
  });
}

test("denies, delegates, and leaves alias records out", async () => {
  const test = await serve();
  const missing = await test.ask({ name: "none.example.org." });
  assert.equal(missing.rcode, Rcode.NXDOMAIN);
  assert.deepEqual(missing.authority, [`example.org. 900 IN SOA ${SOA}`]);
  assert.equal((await test.ask({ name: "balancer.example.org." })).rcode, Rcode.NXDOMAIN);
  const below = await test.ask({ name: "a.sub.example.org." });
  assert.equal(below.reply.flags & 0x0400, 0);
  assert.deepEqual(below.authority, ["sub.example.org. 300 IN NS ns.elsewhere.test."]);
  assert.equal((await test.ask({ name: "www.example.org.", type: "TXT" })).rcode, Rcode.NOERROR);
});

test("tries zones of one name in order until one has the name, and falls through after the last", async () => {
  server.zones.set("Z2", [
    ...HEAD,
    { name: "private.example.org.", type: "A", values: ["192.0.2.9"] },
    { name: "www.example.org.", type: "TXT", values: ['"second"'] },
  ]);
  const test = await serve("example.org.:Z1 example.org.:Z2", `${KEY}\nfallthrough`);
  const ask = async (name: string, type = "A") =>
    (await test.ask({ name, type, next: answering({ answer: records("next. 1 IN A 192.0.2.7") }) })).answer;
  assert.deepEqual(await ask("private.example.org."), ["private.example.org. 300 IN A 192.0.2.9"]);
  assert.deepEqual(await ask("www.example.org.", "TXT"), [], "the first one knows the name");
  assert.deepEqual(await ask("none.example.org."), ["next. 1 IN A 192.0.2.7"]);
});

test("applies changes at each interval, and keeps unchanged data", async () => {
  const test = await serve(undefined, `${KEY}\nrefresh 30`);
  const before = await test.metrics.expose();
  assert.match(before.body, /^portolan_zone_records\{zone="example\.org\."\} 19$/m);
  server.zones.set("Z1", [...HEAD, { name: "www.example.org.", type: "A", values: ["192.0.2.8"] }]);
  const { count } = server;
  await test.clock.settle(20_000);
  assert.equal(server.count, count);
  await soon(
    test,
    async () =>
      (await test.ask({ name: "www.example.org." })).answer.join() === "www.example.org. 300 IN A 192.0.2.8",
  );
});

test("keeps its zone through faults, and logs each fault and the zone's age once", async () => {
  const test = await serve(undefined, `${KEY}\nrefresh 10s`);
  server.keys = new Set();
  const complaints = () =>
    test.log.lines.filter((line) => line.includes("Failed to update zone example.org."));
  await soon(test, () => complaints().length > 0);
  const { count } = server;
  await soon(test, () => server.count > count + 1);
  assert.equal(complaints().length, 1);
  assert.match(
    complaints()[0] ?? "",
    /route53:ListResourceRecordSets of hosted zone Z1: InvalidClientTokenId: The security token/,
  );
  assert.equal((await test.ask({ name: "none.example.org." })).rcode, Rcode.NXDOMAIN);
  assert.equal((await test.ask({ name: "www.example.org." })).answer.length, 2);
  assert.match(
    String(test.instances[0]?.describeState?.()),
    /^example\.org\. \(hosted zone Z1\): serial 1, 19 records, read \w+ ago, cannot be read now: /,
  );
  server.keys = new Set([STATIC_KEY]);
  await soon(test, () => test.log.lines.some((line) => line.includes("hosted zone Z1 is available again")));
});

test("a throttled request is made again", async () => {
  server.faults.push("throttled");
  const test = await serve();
  assert.equal((await test.ask({ name: "www.example.org." })).answer.length, 2);
});

test("a malformed record affects only itself, and is logged once", async () => {
  server.zones.set("Z1", [
    ...HEAD,
    { name: "bad.example.org.", type: "A", values: ["192.0.2.300", "192.0.2.1"] },
    { name: "odd\\041.example.org.", type: "A", values: ["192.0.2.1"] },
    { name: "www.elsewhere.test.", type: "A", values: ["192.0.2.1"] },
  ]);
  const test = await serve(undefined, `${KEY}\nrefresh 1s`);
  const { count } = server;
  await soon(test, () => server.count > count + 6);
  assert.deepEqual((await test.ask({ name: "bad.example.org." })).answer, [
    "bad.example.org. 300 IN A 192.0.2.1",
  ]);
  const lines = test.log.lines.filter((line) => line.includes("skipped"));
  assert.equal(lines.length, 3);
  assert.match(lines.join(), /bad\.example\.org\. is skipped: .*192\.0\.2\.300/);
  assert.match(
    (await test.metrics.expose()).body,
    /^portolan_zone_passed_over_records\{zone="example\.org\."\} 3$/m,
  );
});

test("a reload takes over the zone, even if Route 53 is unreachable", async () => {
  const before = await serve();
  server.keys = new Set();
  const after = make();
  for (const [index, instance] of after.instances.entries())
    await instance.inherit?.([{ name: "route53", instance: before.instances[index] ?? {} }]);
  await after.start();
  assert.equal((await after.ask({ name: "www.example.org." })).answer.length, 2);
});

for (const [title, prepare, message] of [
  [
    "wrong keys",
    () => {
      server.keys = new Set();
    },
    /^failed to initialize route53 plugin: route53:ListResourceRecordSets of hosted zone Z1: InvalidClientTokenId: The security token .+ is invalid\.$/,
  ],
  [
    "a missing right",
    () => void server.faults.push("denied"),
    /AccessDenied: User: .* is not authorized to perform: route53:ListResourceRecordSets on resource: .*hostedzone\/Z1$/,
  ],
  [
    "an unknown hosted zone",
    () => server.zones.clear(),
    /NoSuchHostedZone: No hosted zone found with ID: Z1$/,
  ],
  [
    "another zone's id",
    () => void server.zones.set("Z1", [{ name: "other.test.", type: "SOA", values: [SOA] }]),
    /the zone example\.org\. has no SOA record$/,
  ],
] as const) {
  test(`refuses to start with ${title}`, async () => {
    prepare();
    await assert.rejects(
      make().start(),
      (error) => error instanceof SetupError && message.test(error.message) && !error.message.includes("\n"),
    );
  });
}

for (const [title, key, prepare] of [
  [
    "the environment",
    STATIC_KEY,
    () => Object.assign(process.env, { AWS_ACCESS_KEY_ID: STATIC_KEY, AWS_SECRET_ACCESS_KEY: "secret" }),
  ],
  [
    "a profile of the usual file",
    STATIC_KEY,
    () => {
      process.env.AWS_SHARED_CREDENTIALS_FILE = join(folder, "usual");
      process.env.AWS_PROFILE = "dns";
      writeFileSync(
        join(folder, "usual"),
        `[dns]\naws_access_key_id = ${STATIC_KEY}\naws_secret_access_key = secret\n`,
      );
    },
  ],
  [
    "a web identity (IRSA)",
    WEB_IDENTITY_KEY,
    () => {
      writeFileSync(join(folder, "jwt"), "jwt");
      Object.assign(process.env, {
        AWS_ROLE_ARN: "arn:aws:iam::1:role/dns",
        AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, "jwt"),
        AWS_ENDPOINT_URL_STS: server.url,
      });
    },
  ],
  [
    "a pod identity (EKS)",
    POD_IDENTITY_KEY,
    () => {
      writeFileSync(join(folder, "token"), "pod-token");
      Object.assign(process.env, {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${server.url}/pod-identity`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: join(folder, "token"),
      });
    },
  ],
  [
    "the metadata of the instance",
    METADATA_KEY,
    () => {
      delete process.env.AWS_EC2_METADATA_DISABLED;
      process.env.AWS_EC2_METADATA_SERVICE_ENDPOINT = server.url;
    },
  ],
] as const) {
  test(`signs in with ${title}`, async () => {
    prepare();
    await serve(undefined, "");
    assert.equal(server.users.at(-1), key);
  });
}

test("signs in again when valid credentials are rejected", async () => {
  writeFileSync(join(folder, "jwt"), "jwt");
  Object.assign(process.env, {
    AWS_ROLE_ARN: "arn:aws:iam::1:role/dns",
    AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, "jwt"),
    AWS_ENDPOINT_URL_STS: server.url,
  });
  const test = await serve(undefined, "refresh 10s");
  server.webIdentityKey = "ASIASECOND";
  server.keys = new Set(["ASIASECOND"]);
  await soon(test, () => server.users.at(-1) === "ASIASECOND");
  await soon(test, () => test.log.lines.some((line) => line.includes("hosted zone Z1 is available again")));
});

test("uses a key that was written to the file since", async () => {
  const file = join(folder, "keys");
  const write = (key: string): void =>
    writeFileSync(file, `[dns]\naws_access_key_id = ${key}\naws_secret_access_key = secret\n`);
  write(STATIC_KEY);
  const test = await serve(undefined, `credentials dns ${file}\nrefresh 10s`);
  server.keys = new Set(["AKIDSECOND"]);
  await soon(test, () => test.log.lines.some((line) => line.includes("InvalidClientTokenId")));
  write("AKIDSECOND");
  await soon(test, () => test.log.lines.some((line) => line.includes("hosted zone Z1 is available again")));
  assert.equal(server.users.at(-1), "AKIDSECOND");
});

test("aborts a list whose pages loop", async () => {
  server.isCircle = true;
  await assert.rejects(
    make().start(),
    /failed to initialize route53 plugin: the record sets of hosted zone Z1 loop$/,
  );
});

test("a wrong clock is corrected", async () => {
  server.clockOffset = 3_600_000;
  const test = await serve();
  assert.equal((await test.ask({ name: "www.example.org." })).answer.length, 2);
});

test("signs in with a profile of a file that the Corefile names", async () => {
  writeFileSync(
    join(folder, "keys"),
    `[dns]\naws_access_key_id = ${STATIC_KEY}\naws_secret_access_key = secret\n`,
  );
  await serve(undefined, `credentials dns ${join(folder, "keys")}`);
  assert.equal(server.users.at(-1), STATIC_KEY);
});

for (const [text, message] of [
  ["route53", /unexpected line ending/],
  ["route53 example.org", /invalid zone "example\.org"/],
  ["route53 :Z1", /invalid zone ":Z1"/],
  ["route53 example.org:", /invalid zone "example\.org:"/],
  ["route53 example.org.:Z1 example.org.:Z1", /conflict zone "example\.org\.:Z1"/],
  ["route53 example.org.:Z1 {\nrefresh 0\n}", /refresh interval must be greater than 0: '0'/],
  ["route53 example.org.:Z1 {\nrefresh x\n}", /refresh interval must be greater than 0: 'x'/],
  ["route53 example.org.:Z1 {\naws_access_key A\n}", /unexpected line ending/],
  ["route53 example.org.:Z1 {\naws_endpoint x\n}", /'x' is not a URL/],
  ["route53 example.org.:Z1 {\nfoo\n}", /unknown property 'foo'/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => PluginTest.of(route53, text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
