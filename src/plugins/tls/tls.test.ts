import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CertificateAuthority, type CertificateOptions } from "../../../test/support/certificates.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { ConfigRefused, PluginTest, until } from "../../plugin/testing.ts";
import tls from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "portolan-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const authority = new CertificateAuthority();
const at = (name: string): string => join(folder, name);

function issue(prefix: string, options: Partial<CertificateOptions> = {}): void {
  const { certificate, key } = authority.issue({
    commonName: "example.org",
    notAfter: new Date(2090, 1, 1),
    ...options,
  });
  writeFileSync(at(`${prefix}.crt`), certificate);
  writeFileSync(at(`${prefix}.key`), key);
}

function plugin(text: string): PluginTest<unknown> {
  // Certificates are checked against the server's clock.
  return PluginTest.of(tls, text, { clock: new FakeClock({ wallTime: Date.now() }) });
}

issue("good");

test("valid files are the identity of the block", async () => {
  const running = plugin(`tls ${at("good.crt")} ${at("good.key")}`);
  const { identity } = running.settings;
  await running.start();
  assert.equal(identity?.current?.clientAuthentication, "nocert");
  assert.deepEqual(identity?.current?.context.cert, readFileSync(at("good.crt")));
  await running.stop();
  assert.equal(running.clock.pendingTimers, 0);
});

issue("other");
issue("expired", { notBefore: new Date(2020, 1, 1), notAfter: new Date(2021, 1, 1) });
writeFileSync(at("junk"), "no PEM");

for (const [name, words, reason] of [
  ["a missing certificate", "none.crt good.key", /none\.crt/],
  ["a missing key", "good.crt none.key", /none\.key/],
  [
    "an invalid certificate",
    "junk good.key",
    /could not load TLS certificate .*junk.*holds no certificate in PEM form/,
  ],
  ["an invalid key", "good.crt junk", /the key file holds no private key in PEM form/],
  ["a key that does not match", "good.crt other.key", /the key does not belong to the certificate/],
  ["a missing CA", "good.crt good.key none.ca", /none\.ca/],
  ["an invalid CA", "good.crt good.key junk", /the file of certificate authorities holds no/],
] as const) {
  test(`${name} prevents the start`, async () => {
    const running = plugin(`tls ${words.split(" ").map(at).join(" ")}`);
    await assert.rejects(running.start(), reason);
    await running.stop();
  });
}

test("a valid change is used, a broken one is not, and the next valid one is", async () => {
  issue("mine");
  const running = plugin(`tls ${at("mine.crt")} ${at("mine.key")}`);
  await running.start();
  const { identity } = running.settings;
  const first = identity?.current;
  const look = (done: () => boolean): Promise<void> =>
    until(() => {
      running.clock.advance(2_000);
      return done();
    });
  const faults = (): number => running.log.lines.filter((line) => line.includes("stays in use")).length;
  writeFileSync(at("mine.crt"), readFileSync(at("other.crt")));
  await look(() => faults() === 1);
  assert.equal(identity?.current, first);
  assert.match(
    running.log.lines.at(-1) ?? "",
    /key values mismatch\); the previous certificate stays in use/,
  );
  writeFileSync(at("mine.key"), readFileSync(at("other.key")));
  await look(() => identity?.current !== first);
  assert.deepEqual(identity?.current?.context.cert, readFileSync(at("other.crt")));
  rmSync(at("mine.key"));
  await look(() => faults() === 2);
  assert.deepEqual(identity?.current?.context.key, readFileSync(at("other.key")));
  const { body } = await running.metrics.expose();
  assert.match(body, /^portolan_tls_certificate_load_failures_total\{.*\} 2$/m);
  assert.match(body, /^portolan_tls_certificate_expiry_timestamp_seconds\{.*\} \d{10}$/m);
  await running.stop();
});

test("an expired certificate is served and logged every hour, until it is renewed", async () => {
  for (const name of ["crt", "key"])
    writeFileSync(at(`renewed.${name}`), readFileSync(at(`expired.${name}`)));
  const running = PluginTest.of(tls, `tls ${at("renewed.crt")} ${at("renewed.key")}`, {
    clock: new FakeClock({ wallTime: Date.now() }),
    keys: "tls://.:853",
  });
  await running.start();
  const { identity } = running.settings;
  const [instance] = running.instances;
  const told = (): number =>
    running.log.lines.filter((line) =>
      /\[ERROR\].*renewed\.crt expired on \w+, .* 2021 .* without a restart/.test(line),
    ).length;
  assert.deepEqual(identity?.current?.context.cert, readFileSync(at("expired.crt")));
  assert.deepEqual([told(), instance?.ready?.()], [1, false]);
  assert.match(String(instance?.describeState?.()), /renewed\.crt expired on/);
  running.clock.advance(59 * 60_000);
  assert.equal(told(), 1);
  running.clock.advance(30 * 60_000);
  assert.equal(told(), 2);
  for (const name of ["crt", "key"]) writeFileSync(at(`renewed.${name}`), readFileSync(at(`good.${name}`)));
  await until(() => {
    running.clock.advance(2_000);
    return instance?.ready?.() === true;
  });
  assert.deepEqual(identity?.current?.context.cert, readFileSync(at("good.crt")));
  assert.match(running.log.lines.at(-1) ?? "", /renewed\.crt is in use for new connections/);
  // The system may have taken so long to report the new file that another hour of this clock was over.
  const toldBefore = told();
  running.clock.advance(2 * 60 * 60_000);
  assert.deepEqual([told(), instance?.describeState?.()], [toldBefore, []]);
  // An expired file does not replace a valid certificate.
  writeFileSync(at("renewed.key"), readFileSync(at("expired.key")));
  writeFileSync(at("renewed.crt"), readFileSync(at("expired.crt")));
  await until(() => {
    running.clock.advance(2_000);
    return /it expired on .* the previous certificate stays in use/.test(running.log.lines.at(-1) ?? "");
  });
  assert.deepEqual(identity?.current?.context.cert, readFileSync(at("good.crt")));
  await running.stop();
  assert.equal(running.clock.pendingTimers, 0);
});

test("a certificate that expires while in use is logged, and stays", async () => {
  const notAfter = new Date(Date.now() + 1_800_000);
  issue("short", { notAfter });
  const running = plugin(`tls ${at("short.crt")} ${at("short.key")}`);
  await running.start();
  assert.deepEqual(running.log.lines, []);
  running.clock.advance(3_600_000);
  assert.match(running.log.lines.join("\n"), /\[ERROR\].*short\.crt expired on/);
  assert.notEqual(running.settings.identity?.current, undefined);
  await running.stop();
});

test("a block with an expired certificate is not ready, although it serves plain DNS, and check warns of it", async () => {
  const text = `tls ${at("expired.crt")} ${at("expired.key")}`;
  const running = PluginTest.of(tls, text, {
    clock: new FakeClock({ wallTime: Date.now() }),
    keys: ".:53 tls://.:853",
  });
  await running.start();
  assert.equal(running.instances[0]?.ready?.(), false);
  assert.match(
    String(running.instances[0]?.describeState?.()),
    /^dns:\/\/\.:53 tls:\/\/\.:853: certificate .*expired\.crt expired on \w+, .* 2021 /,
  );
  await running.stop();
  const checked = plugin(text);
  await checked.instances[0]?.examine?.();
  assert.match(checked.log.lines.join("\n"), /\[WARNING\].*expired\.crt expired on/);
});

test("keylog makes a file for its owner alone, and warns", async () => {
  const running = plugin(`tls ${at("good.crt")} ${at("good.key")} {\n keylog ${at("secrets")}\n}`);
  await running.start();
  running.settings.identity?.current?.keyLog?.(Buffer.from("CLIENT_RANDOM 1 2\n"));
  await running.stop();
  await until(() => statSync(at("secrets")).size > 0);
  assert.equal(readFileSync(at("secrets"), "utf8"), "CLIENT_RANDOM 1 2\n");
  assert.equal(statSync(at("secrets")).mode & 0o777, 0o600);
  assert.match(running.log.lines.join("\n"), /can decrypt all queries/);
});

test("discovery without a listener to announce gets a warning", () => {
  const text = "tls a b {\n discovery dns.example\n}";
  assert.deepEqual(PluginTest.of(tls, text, { keys: ".:53 tls://.:853" }).warnings, []);
  for (const keys of [".:53", "tls://example.org:853", "grpc://.:443"])
    assert.match(PluginTest.of(tls, text, { keys }).warnings.join(), /'discovery' has nothing to announce/);
});

test("acme accepts the names of certificates", () => {
  const { configs } = plugin("tls {\n acme Bücher.Example. *.WILD.example wild.example *.wild.example\n}");
  assert.deepEqual(
    configs.map((config) => (config as { readonly acme: { readonly domains: unknown } }).acme.domains),
    [["xn--bcher-kva.example", "*.wild.example", "wild.example"]],
  );
});

test("a name has the same options in all blocks", async () => {
  const shared = new Map<string, unknown>();
  const block = (text: string) => PluginTest.of(tls, text, { shared });
  block("tls {\n acme a.example b.example\n}");
  block("tls {\n acme b.example\n}");
  assert.throws(
    () => block("tls {\n acme c.example b.example\n email a@example.org\n}"),
    /ACME domain "b\.example" is configured with conflicting options/,
  );
});

for (const [name, words, reason] of [
  ["no roots", `ca_root ${at("none")}`, /could not read ACME ca_root .*none/],
  ["invalid roots", `ca_root ${at("junk")}`, /could not read ACME ca_root .*junk/],
  ["a file in place of a folder", `storage ${at("junk")}`, /cannot write to ACME storage .*junk/],
] as const) {
  test(`acme with ${name} prevents the start`, async () => {
    const running = plugin(`tls {\n acme a.example\n ${words}\n}`);
    await assert.rejects(running.start(), reason);
    await running.stop();
    assert.equal(running.clock.pendingTimers, 0);
  });
}

for (const [text, message] of [
  ["tls", /Wrong argument count/],
  ["tls a", /Wrong argument count/],
  ["tls a b c d", /Wrong argument count/],
  ["tls a b {\n client_auth maybe\n}", /unknown authentication type 'maybe'/],
  ["tls a b {\n acme example.org\n}", /unknown property 'acme'/],
  ["tls {\n email a@example.org\n}", /ACME requires at least one domain/],
  ["tls {\n acme\n}", /ACME requires at least one domain/],
  ["tls {\n acme a.example\n keylog x\n}", /unknown ACME option "keylog"/],
  ["tls {\n acme a.example\n acme b.example\n}", /ACME option "acme" can only be specified once/],
  ["tls {\n acme a.example\n ca\n}", /Wrong argument count .* after 'ca'/],
  ["tls {\n acme a.example\n ca x y\n}", /Wrong argument count .* after 'y'/],
  ["tls {\n acme a.example\n ca ftp://ca.example\n}", /invalid ACME CA "ftp:/],
  ["tls {\n acme a.example\n email ../a@b/c\n}", /invalid ACME email/],
  ["tls {\n acme a.example\n resolver 192.0.2.1\n}", /invalid ACME resolver/],
  ["tls {\n acme 192.0.2.1\n}", /invalid ACME domain "192\.0\.2\.1": .*addresses/],
  ["tls {\n acme [2001:db8::1]\n}", /invalid ACME domain .*addresses/],
  ["tls {\n acme a.*.example\n}", /a wildcard can only be the first label/],
  ["tls {\n acme ../../etc\n}", /not a host name/],
  ["tls a b {\n discovery\n}", /Wrong argument count .* after 'discovery'/],
  ["tls a b {\n discovery dns.example nowhere\n}", /'nowhere' is not an IP address/],
  ["tls {\n acme a.example\n discovery a..b\n}", /not a domain name/],
  ["tls a b\ntls c d", /only be used once/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => plugin(text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
