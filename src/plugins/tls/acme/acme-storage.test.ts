import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { CertificateAuthority } from "../../../../test/support/certificates.ts";
import { AcmeStorage, readCertificate } from "./acme-storage.ts";

const authority = new CertificateAuthority();
const issued = authority.issue({ commonName: "dns.example", hosts: ["dns.example"] });
const other = authority.issue({ commonName: "other.example", hosts: ["other.example"] });
const stored = readCertificate(issued.certificate, issued.key);

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "portolan-acme-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  // Not there before the first file is.
  return join(folder, "ca", "account");
}

test("the account's key is made once, and only its owner reads it", async (t) => {
  const folder = makeFolder(t);
  const { thumbprint } = await new AcmeStorage(folder).accountKey();
  assert.equal((await new AcmeStorage(folder).accountKey()).thumbprint, thumbprint);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(statSync(join(folder, "account.pem")).mode & 0o777, 0o600);
});

test("a certificate is read as it was written, also after a crash in the middle of a write", async (t) => {
  const folder = makeFolder(t);
  const storage = new AcmeStorage(folder);
  assert.equal(await storage.read("dns.example"), undefined);
  await storage.write("dns.example", stored);
  writeFileSync(join(folder, "dns.example.pem.new"), "half of a ke");
  assert.deepEqual((await storage.read("dns.example"))?.raw, stored.raw);
  await storage.write("dns.example", readCertificate(other.certificate, other.key));
  const read = await storage.read("dns.example");
  assert.equal(read?.key.trim(), other.key.trim());
  assert.equal(read?.chain.trim(), other.certificate.trim());
  assert.deepEqual(readdirSync(folder), ["dns.example.pem"]);
});

test("a wildcard has a file of its own, without an asterisk", async (t) => {
  const folder = makeFolder(t);
  const storage = new AcmeStorage(folder);
  await storage.write("*.example", stored);
  await storage.write("example", stored);
  assert.deepEqual(readdirSync(folder).sort(), ["example.pem", "wildcard_.example.pem"]);
});

test("a file with the key of another certificate is refused", async (t) => {
  const folder = makeFolder(t);
  const storage = new AcmeStorage(folder);
  await storage.write("dns.example", { ...stored, key: other.key });
  await assert.rejects(storage.read("dns.example"), /^Error: the key does not match the certificate$/);
});

test("a folder that does not exist is writable if its parent is; a file is no folder", async (t) => {
  const folder = makeFolder(t);
  await new AcmeStorage(folder).probe();
  const file = join(folder, "..", "..", "file");
  writeFileSync(file, "");
  await assert.rejects(new AcmeStorage(join(file, "account")).probe(), { code: "ENOTDIR" });
});
