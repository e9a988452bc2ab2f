/** `prometheus { tls }` with `basic_auth_users`: scrapes with a password, asked by curl. */
import assert from "node:assert/strict";
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CertificateAuthority } from "../support/certificates.ts";
import { dig } from "../support/dig.ts";
import { Portolan, runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

const PASSWORD = "sésame:ouvre";
const DIGEST = "$05$abcdefghijklmnopqrstuufh9gcQfElmjpl2Gl08TagDUV0g5N./C";
/** Of the same password: every kind of hash, made by crypt(3). */
const USERS = ["a", "b", "y"].map((kind) => `  user-${kind}: $2${kind}${DIGEST}`).join("\n");
/** No password matches this hash, and checking it is slow. */
const SLOW = "  slow: $2y$13$abcdefghijklmnopqrstuuAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const WEB = `
basic_auth_users:
${USERS}
${SLOW}
http_server_config:
  headers:
    X-Frame-Options: deny
`;
const TLS = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}";

const authority = new CertificateAuthority();
const { certificate, key } = authority.issue({ commonName: "metrics", hosts: ["127.0.0.1"] });

const corefile = (port: (name: string) => number): string => `
.:${port("dns")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")} {
        tls web.yml
    }
    whoami
}
`;

let server: Portolan;
before(async () => {
  server = await Portolan.start(corefile, {
    files: { "web.yml": WEB, "cert.pem": certificate, "key.pem": key, "ca.pem": authority.certificate },
  });
});
after(() => server[Symbol.asyncDispose]());

/** @returns what curl shows, and the status */
async function scrape(user?: string, scheme = "http"): Promise<{ status: number; output: string }> {
  const { output } = await run("curl", [
    "-sSi",
    ...(user === undefined ? [] : ["-u", user]),
    "--cacert",
    join(server.folder, "ca.pem"),
    `${scheme}://127.0.0.1:${server.portOf("metrics")}/metrics`,
  ]);
  return { status: Number(/^HTTP\/1\.1 (\d+)/.exec(output)?.[1]), output };
}

function threads(): readonly string[] {
  return globSync(`/proc/${server.program.pid}/task/*/comm`).map((path) => readFileSync(path, "utf8").trim());
}

test("a request without a password gets no metrics, and starts no thread", async () => {
  const { status, output } = await scrape();
  assert.equal(status, 401);
  assert.match(output, /^www-authenticate: Basic\r$/im);
  assert.match(output, /^x-frame-options: deny\r$/im);
  assert.doesNotMatch(output, /coredns_/);
  assert.ok(!threads().includes("portolan-passwo"));
});

for (const kind of ["a", "b", "y"])
  test(`a $2${kind}$ hash accepts its password, and no other`, async () => {
    const first = await scrape(`user-${kind}:${PASSWORD}`);
    assert.equal(first.status, 200);
    assert.match(first.output, /^coredns_build_info/m);
    assert.equal((await scrape(`user-${kind}:${PASSWORD}`)).status, 200);
    for (const wrong of [`user-${kind}:${PASSWORD}x`, `user-${kind}:`, `absent:${PASSWORD}`])
      assert.equal((await scrape(wrong)).status, 401, wrong);
    assert.ok(threads().includes("portolan-passwo"));
  });

test("credentials that make no sense are refused", async () => {
  for (const authorization of ["Basic", "Basic !", "Bearer x", "Basic /w==", "Basic YQ==", "basic Og=="]) {
    const response = await new Promise<number | undefined>((resolve, reject) => {
      request({
        host: "127.0.0.1",
        port: server.portOf("metrics"),
        path: "/metrics",
        headers: { authorization },
      })
        .on("response", (found) => resolve(found.resume().statusCode))
        .on("error", reject)
        .end();
    });
    assert.equal(response, 401, authorization);
  }
});

test("who guesses many passwords keeps neither queries nor those with a known password waiting", async () => {
  assert.equal((await scrape(`user-a:${PASSWORD}`)).status, 200);
  const done: string[] = [];
  const guesses = Array.from({ length: 6 }, async (_, number) => {
    const { status } = await scrape(`slow:${number}`);
    done.push(`guess ${status}`);
    return status;
  });
  // Those that find the places taken are answered first: four are waiting then.
  await Promise.race(guesses);
  assert.equal((await dig(server, "example.org")).status, "NOERROR");
  done.push("query");
  assert.equal((await scrape(`user-a:${PASSWORD}`)).status, 200);
  done.push("scrape");
  const statuses = (await Promise.all(guesses)).toSorted((a, b) => a - b);
  assert.deepEqual(statuses, [401, 401, 401, 401, 429, 429]);
  assert.ok(done.indexOf("query") < done.lastIndexOf("guess 401"), done.join(", "));
  assert.ok(done.indexOf("scrape") < done.lastIndexOf("guess 401"), done.join(", "));
  const { output } = await scrape(`user-a:${PASSWORD}`);
  assert.match(output, /^portolan_prometheus_refused_scrapes_total\{reason="busy"\} 2$/m);
  assert.match(output, /^portolan_prometheus_refused_scrapes_total\{reason="credentials"\} \d+$/m);
});

test("changed users take effect, invalid hashes do not", async () => {
  assert.equal((await scrape(`user-y:${PASSWORD}`)).status, 200);
  await change(`basic_auth_users: {later: $2y${DIGEST}}\n`);
  assert.equal((await scrape(`later:${PASSWORD}`)).status, 200);
  assert.equal((await scrape(`user-y:${PASSWORD}`)).status, 401);
  await change(
    WEB.replace("user-y: $2y$05", "user-y: $2y$99"),
    /web\.yml:5: .*the previous one stays in use/,
  );
  assert.equal((await scrape(`later:${PASSWORD}`)).status, 200);
  await change(WEB);
});

test("passwords and encryption go together", async () => {
  writeFileSync(join(server.folder, "web.yml"), `${TLS}\n${WEB}`);
  assert.match(await server.reload(corefile), /Reloading complete/);
  assert.equal((await scrape(undefined, "https")).status, 401);
  assert.equal((await scrape(`user-a:${PASSWORD}`, "https")).status, 200);
  writeFileSync(join(server.folder, "web.yml"), WEB);
  assert.match(await server.reload(corefile), /Reloading complete/);
  assert.equal((await scrape(`user-a:${PASSWORD}`)).status, 200);
});

test("requests above the rate of the file are put off, whoever asks", async () => {
  await change(`${WEB}rate_limit: {interval: 1h, burst: 2}\n`);
  const user = `user-a:${PASSWORD}`;
  assert.equal((await scrape(user)).status, 200);
  assert.equal((await scrape()).status, 401);
  assert.equal((await scrape(user)).status, 429);
  await change(
    `${WEB}rate_limit: {interval: 1h}\n`,
    /'rate_limit\.burst' is not a whole number.*stays in use/,
  );
  await change(`${WEB}rate_limit: {interval: soon, burst: 1}\n`, /'rate_limit\.interval' is not a duration/);
  await change(WEB);
});

test("a file without users lets no request in", async () => {
  await change("basic_auth_users:\n");
  assert.equal((await scrape()).status, 200);
  await change(WEB);
  assert.equal((await scrape()).status, 401);
});

test("check refuses invalid hashes, and prints no secret", async () => {
  writeFileSync(join(server.folder, "other.yml"), "basic_auth_users:\n  bob: secret\n");
  writeFileSync(
    join(server.folder, "Other"),
    ".:1053 {\n prometheus :0 {\n  tls other.yml\n }\n whoami\n}\n",
  );
  const { code, output, errors } = await runPortolan(["check", "Other"], { cwd: server.folder });
  assert.notEqual(code, 0);
  assert.match(
    output + errors,
    /other\.yml:2: the value of user 'bob' is not a bcrypt hash; make one with `htpasswd/,
  );
  assert.doesNotMatch(output + errors, /secret/);
});

test("check accepts what the server runs with, and the log tells no secret", async () => {
  const { code, output, errors } = await runPortolan(["check", "Corefile"], { cwd: server.folder });
  assert.equal(code, 0, output + errors);
  assert.doesNotMatch(server.log, /ouvre|abcdefgh/);
});

async function change(
  text: string,
  asLogged = /web configuration .*web\.yml is in use for new connections/,
): Promise<void> {
  const logged = server.waitForLog(asLogged, server.log.length);
  writeFileSync(join(server.folder, "web.yml"), text);
  await logged;
}
