/** `prometheus { tls }`: scrapes over HTTPS, as the web configuration file says. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { connect as connectTcp } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { CertificateAuthority } from "../support/certificates.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";

const authority = new CertificateAuthority();
const client = authority.issue({ commonName: "prometheus" });

function files() {
  const { certificate, key } = authority.issue({ commonName: "metrics", hosts: ["127.0.0.1"] });
  return { "certs/cert.pem": certificate, "certs/key.pem": key };
}

const WEB = `
tls_server_config:
  cert_file: certs/cert.pem
  key_file: certs/key.pem
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.pem
  min_version: TLS13
http_server_config:
  headers:
    Strict-Transport-Security: max-age=31536000
`;

const corefile =
  (options: string) =>
  (port: (name: string) => number): string =>
    `
.:${port("dns")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")} ${options}
    health 127.0.0.1:${port("health")}
    ready 127.0.0.1:${port("ready")}
    whoami
}
`;

let server: Portolan;
before(async () => {
  server = await Portolan.start(corefile("{\ntls web.yml\n}"), {
    files: { ...files(), "ca.pem": authority.certificate, "web.yml": WEB },
  });
});
after(() => server[Symbol.asyncDispose]());

interface Scrape {
  readonly status: number | undefined;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
  readonly serial: string | undefined;
}

async function scrape(options: object = { cert: client.certificate, key: client.key }): Promise<Scrape> {
  const asking = request({
    host: "127.0.0.1",
    port: server.portOf("metrics"),
    path: "/metrics",
    ca: authority.certificate,
    agent: false,
    ...options,
  }).end();
  const [response] = await once(asking, "response");
  const serial = (response.socket as TLSSocket).getPeerX509Certificate()?.serialNumber;
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const { statusCode, headers } = response;
  return { status: statusCode, headers, body: Buffer.concat(chunks).toString(), serial };
}

test("a client with a certificate gets the metrics, and the headers of the file", async () => {
  const { status, headers, body } = await scrape();
  assert.equal(status, 200);
  assert.equal(headers["strict-transport-security"], "max-age=31536000");
  assert.match(body, /^coredns_build_info/m);
});

test("clients without one, with an older TLS, or without TLS get nothing", async () => {
  await assert.rejects(scrape({}));
  const stranger = new CertificateAuthority().issue({ commonName: "prometheus" });
  await assert.rejects(scrape({ cert: stranger.certificate, key: stranger.key }));
  await assert.rejects(scrape({ cert: client.certificate, key: client.key, maxVersion: "TLSv1.2" }));
  await assert.rejects(server.page("metrics", "/metrics"));
});

test("a connection that says nothing is closed", async () => {
  const silent = connectTcp(server.portOf("metrics"), "127.0.0.1");
  await once(silent.resume(), "close");
});

test("health and ready stay as they are", async () => {
  assert.deepEqual(await server.page("health", "/health"), { status: 200, body: "OK" });
  assert.deepEqual(await server.page("ready", "/ready"), { status: 200, body: "OK" });
});

test("a certificate that changes is taken into force, and a broken file is not", async () => {
  const { serial } = await scrape();
  for (const [name, text] of Object.entries(files())) writeFileSync(join(server.folder, name), text);
  await server.waitForLog(/web configuration .*web\.yml is in use for new connections/);
  const renewed = (await scrape()).serial;
  assert.notEqual(renewed, serial);
  writeFileSync(join(server.folder, "web.yml"), `${WEB}basic_auth_users: {a: b}\n`);
  await server.waitForLog(
    /web\.yml:11: the value of user 'a' is not a bcrypt hash.*the previous one stays in use/,
  );
  assert.equal((await scrape()).serial, renewed);
  writeFileSync(join(server.folder, "web.yml"), WEB);
});

test("only clients with a name that is allowed get the metrics", async () => {
  const named = authority.issue({ commonName: "x", hosts: ["prometheus.example", "192.0.2.9"] });
  const other = authority.issue({ commonName: "prometheus.example", hosts: ["other.example"] });
  const taken = /web configuration .*web\.yml is in use for new connections/;
  for (const [names, isAllowed] of [
    ["prometheus.example", true],
    ["192.0.2.9", true],
    ["nobody.example", false],
  ] as const) {
    const asked = server.waitForLog(taken, server.log.length);
    writeFileSync(
      join(server.folder, "web.yml"),
      WEB.replace("tls_server_config:", `tls_server_config:\n  client_allowed_sans: [${names}]`),
    );
    await asked;
    if (isAllowed) assert.equal((await scrape({ cert: named.certificate, key: named.key })).status, 200);
    else await assert.rejects(scrape({ cert: named.certificate, key: named.key }));
    await assert.rejects(scrape({ cert: other.certificate, key: other.key }));
  }
  const asked = server.waitForLog(taken, server.log.length);
  writeFileSync(join(server.folder, "web.yml"), WEB);
  await asked;
  assert.equal((await scrape()).status, 200);
});

test("a reload switches encryption off and on", async () => {
  assert.match(await server.reload(corefile("")), /Reloading complete/);
  assert.match((await server.page("metrics", "/metrics")).body, /^coredns_build_info/m);
  assert.match(await server.reload(corefile("{\ntls web.yml\n}")), /Reloading complete/);
  assert.equal((await scrape()).status, 200);
});

for (const [text, reason] of [
  ["tls_server_config: [", /web\.yml: /],
  ["other: 1", /unknown option 'other'/],
  ["tls_server_config: {}", /'tls_server_config\.cert_file' is missing/],
  ["tls_server_config: {cert_file: certs/cert.pem, key_file: none.pem}", /none\.pem/],
  ["tls_server_config: {cert_file: ca.pem, key_file: certs/key.pem}", /certificate and key: .*mismatch/],
  [
    "tls_server_config: {cert_file: certs/cert.pem, key_file: certs/key.pem, client_auth_type: Maybe}",
    /unknown 'client_auth_type: Maybe'; expected one of NoClientCert/,
  ],
  [
    "tls_server_config: {cert_file: certs/cert.pem, key_file: certs/key.pem, client_allowed_sans: [a]}",
    /'tls_server_config\.client_allowed_sans' needs 'client_auth_type: RequireAndVerifyClientCert'/,
  ],
] as const) {
  test(`check refuses ${text}`, async () => {
    writeFileSync(join(server.folder, "web.yml"), text);
    const { code, output, errors } = await runPortolan(["check", "Corefile"], { cwd: server.folder });
    writeFileSync(join(server.folder, "web.yml"), WEB);
    assert.notEqual(code, 0);
    assert.match(output + errors, reason);
    assert.match(output + errors, /could not load web configuration/);
  });
}

test("check accepts what the server runs with", async () => {
  const { code, output, errors } = await runPortolan(["check", "Corefile"], { cwd: server.folder });
  assert.equal(code, 0, output + errors);
});
