import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { CertificateAuthority, type CertificateOptions } from "../../../test/support/certificates.ts";
import { FakeClock } from "../../lib/clock.ts";
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
  // Certificates are judged by the server's clock.
  return PluginTest.of(tls, text, { clock: new FakeClock({ wallTime: Date.now() }) });
}

issue("good");

test("files that are right are the identity of the block", async () => {
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
  ["a certificate that is none", "junk good.key", /could not load TLS certificate .*junk/],
  ["a key that is none", "good.crt junk", /could not load TLS certificate/],
  ["a key that does not fit", "good.crt other.key", /key values mismatch/],
  ["an expired certificate", "expired.crt expired.key", /it expired on/],
  ["a missing authority", "good.crt good.key none.ca", /none\.ca/],
] as const) {
  test(`${name} refuses the start`, async () => {
    const running = plugin(`tls ${words.split(" ").map(at).join(" ")}`);
    await assert.rejects(running.start(), reason);
    await running.stop();
  });
}

test("a change is taken over, a broken one is not, and the next right one is", async () => {
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
  const faults = (): number => running.log.lines.filter((line) => line.includes("stays in force")).length;
  writeFileSync(at("mine.crt"), readFileSync(at("other.crt")));
  await look(() => faults() === 1);
  assert.equal(identity?.current, first);
  assert.match(
    running.log.lines.at(-1) ?? "",
    /key values mismatch; the certificate before it stays in force/,
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

for (const [text, message] of [
  ["tls", /Wrong argument count/],
  ["tls a", /Wrong argument count/],
  ["tls a b c d", /Wrong argument count/],
  ["tls a b {\n client_auth maybe\n}", /unknown authentication type 'maybe'/],
  ["tls a b {\n acme example.org\n}", /unknown property 'acme'/],
  ["tls a b\ntls c d", /only be used once/],
] as const) {
  test(`refuses ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => plugin(text),
      (error) => error instanceof ConfigRefused && message.test(error.message),
    );
  });
}
