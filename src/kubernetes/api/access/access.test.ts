import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { CertificateAuthority } from "../../../../test/support/certificates.ts";
import { CredentialsFolder } from "../../../../test/support/kubernetes-api/credentials-folder.ts";
import { SourceTest, type SourceTestOptions } from "../../../../test/support/kubernetes-api/source-test.ts";
import { FakeClock } from "../../../lib/time/clock.ts";
import { ClusterAccessError, endpointAccess, inClusterAccess, readServer } from "./access.ts";
import { proxyFor } from "./proxy.ts";

const credentials = new CredentialsFolder();
const { authority, serverTls } = credentials;
after(() => credentials[Symbol.dispose]());

describe("in a cluster", () => {
  it("signs in with the token of the service account, which changes on disk", async () => {
    credentials.write("token", "first\n");
    let valid = "first";
    await using test = await SourceTest.prepare({
      simulator: { tls: serverTls },
      access: ({ port }) =>
        inClusterAccess(
          { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: String(port) },
          credentials.path,
        ),
    });
    test.api.admits = ({ authorization }) => authorization === `Bearer ${valid}`;
    test.source.start();
    await test.watching();
    valid = "second";
    // As the kubelet does: another file in its place.
    renameSync(credentials.write("token.new", "second\n"), join(credentials.path, "token"));
    test.api.cutConnections();
    test.putService("late");
    await test.until(() => test.services.length === 1);
  });

  it("reaches servers by IPv6 addresses", () => {
    const { servers } = inClusterAccess({
      KUBERNETES_SERVICE_HOST: "fd00::1",
      KUBERNETES_SERVICE_PORT: "443",
    });
    assert.deepEqual(servers, ["https://[fd00::1]:443"]);
  });

  it("is refused where there is no cluster, with what to do", () => {
    assert.throws(
      () => inClusterAccess({}),
      (error) =>
        error instanceof ClusterAccessError &&
        /KUBERNETES_SERVICE_HOST .* 'kubeconfig FILE/.test(error.message),
    );
  });

  it("says that the token is missing, and goes on when it comes", async () => {
    await using test = await SourceTest.start({
      access: (api) => credentials.access({ server: api.url }, { tokenFile: "late-token" }),
    });
    await test.until(() => test.log.lines.length === 3);
    assert.match(
      test.log.lines[0] ?? "",
      /cannot read the token file .*late-token: no such file or directory/,
    );
    credentials.write("late-token", "here");
    await test.synced();
  });
});

describe("TLS", () => {
  const failures: readonly (readonly [title: string, options: SourceTestOptions, reason: RegExp])[] = [
    [
      "an authority that is not trusted",
      {
        simulator: {
          tls: new CertificateAuthority("another").issue({ commonName: "api", hosts: ["127.0.0.1"] }),
        },
      },
      /TLS: the server's certificate is not from the authority that is trusted here/,
    ],
    [
      "a certificate for another host",
      { simulator: { tls: authority.issue({ commonName: "api", hosts: ["other.example"] }) } },
      /TLS: the server's certificate is for other names than the one asked for/,
    ],
    [
      "a certificate of yesterday",
      {
        simulator: {
          tls: authority.issue({
            commonName: "api",
            hosts: ["127.0.0.1"],
            notAfter: new Date(Date.now() - 1000),
          }),
        },
      },
      /TLS: the server's certificate has expired/,
    ],
    [
      "a certificate of tomorrow",
      {
        simulator: {
          tls: authority.issue({
            commonName: "api",
            hosts: ["127.0.0.1"],
            notBefore: new Date(Date.now() + 3_600_000),
          }),
        },
      },
      /TLS: the server's certificate is not valid yet: compare the clocks/,
    ],
    ["a server without it", {}, /TLS: what listens there does not speak TLS: is the URL one of http:\/\/\?/],
  ];
  for (const [title, options, reason] of failures) {
    it(`tells what is wrong with ${title}`, async () => {
      await using test = await SourceTest.start({
        ...options,
        access: (api) =>
          credentials.access(
            { server: api.url.replace("http:", "https:"), "certificate-authority": "ca.crt" },
            {},
          ),
      });
      await test.until(() => test.log.lines.length > 0);
      assert.match(test.log.lines[0] ?? "", reason);
    });
  }

  it("takes new client certificates from the options' files", async () => {
    const issue = (commonName: string) => {
      const { certificate, key } = authority.issue({ commonName });
      credentials.write("client.crt", certificate);
      credentials.write("client.key", key);
    };
    issue("one");
    let valid = "one";
    await using test = await SourceTest.prepare({
      simulator: { tls: { ...serverTls, clientAuthority: authority.certificate } },
      access: (api) =>
        endpointAccess(
          [api.url],
          {
            certificate: join(credentials.path, "client.crt"),
            key: join(credentials.path, "client.key"),
            authority: join(credentials.path, "ca.crt"),
          },
          {},
        ),
    });
    test.api.admits = ({ commonName }) => commonName === valid;
    test.source.start();
    await test.watching();
    issue("two");
    valid = "two";
    test.api.cutConnections();
    test.putService("late");
    await test.until(() => test.services.length === 1);
  });

  for (const http2 of [true, false]) {
    it(`speaks HTTP/${http2 ? 2 : 1.1} with a server that does`, async () => {
      const versions = new Set<string>();
      await using test = await SourceTest.prepare({
        simulator: { tls: serverTls, http2 },
        access: (api) => credentials.access({ server: api.url, "certificate-authority": "ca.crt" }, {}),
      });
      test.api.admits = ({ httpVersion }) => versions.add(httpVersion).size > 0;
      test.source.start();
      await test.watching();
      test.putService("one");
      await test.until(() => test.services.length === 1);
      test.api.cutConnections();
      test.putService("two");
      await test.until(() => test.services.length === 2);
      assert.deepEqual([...versions], [http2 ? "2.0" : "1.1"]);
    });

    it(`notices half-open connections of HTTP/${http2 ? 2 : 1.1}`, async () => {
      const clock = new FakeClock();
      await using test = await SourceTest.start({
        clock,
        simulator: { tls: serverTls, http2 },
        access: (api) => credentials.access({ server: api.url, "certificate-authority": "ca.crt" }),
      });
      await test.watching();
      test.api.freezeConnections();
      test.putService("unheard");
      clock.advance(150_000);
      await test.until(() => test.services.length === 1);
      assert.ok(test.log.lines.some((line) => line.includes("nothing was heard for 150 s")));
    });
  }
});

it("asks the next server when one fails", async () => {
  await using test = await SourceTest.start({
    access: (api) => endpointAccess(["http://127.0.0.1:1", `${api.url}/`], undefined, {}),
  });
  await test.synced();
  assert.match(test.log.lines.join("\n"), /nothing listens at http:\/\/127\.0\.0\.1:1 /);
});

it("reads the URLs of servers", () => {
  assert.equal(readServer("https://10.0.0.1:6443/", "endpoint"), "https://10.0.0.1:6443");
  assert.equal(
    readServer("https://rancher.example/k8s/clusters/c-1", "endpoint"),
    "https://rancher.example/k8s/clusters/c-1",
  );
  assert.equal(readServer("localhost:8080", "endpoint"), "http://localhost:8080");
  for (const text of ["", "https://", "ftp://a", "https://a?b"])
    assert.throws(() => readServer(text, "endpoint"), ClusterAccessError);
});

it("finds proxies in the environment as other clients do", () => {
  const proxy = "http://proxy:3128";
  const cases: [server: string, environment: Record<string, string>, expected: string | undefined][] = [
    ["https://api:6443", { HTTPS_PROXY: proxy }, proxy],
    ["https://api:6443", { https_proxy: "proxy:3128" }, proxy],
    ["http://api:8080", { HTTPS_PROXY: proxy }, undefined],
    ["https://10.96.0.1", { HTTPS_PROXY: proxy, NO_PROXY: "10.96.0.0/12,.svc" }, undefined],
    ["https://11.96.0.1", { HTTPS_PROXY: proxy, NO_PROXY: "10.96.0.0/12,.svc" }, proxy],
    ["https://api.default.svc", { HTTPS_PROXY: proxy, NO_PROXY: " .svc " }, undefined],
    ["https://api:6443", { HTTPS_PROXY: proxy, NO_PROXY: "api:6443" }, undefined],
    ["https://api:6444", { HTTPS_PROXY: proxy, NO_PROXY: "api:6443" }, proxy],
    ["https://[fd00::1]:443", { HTTPS_PROXY: proxy, NO_PROXY: "fd00::1" }, undefined],
    ["https://[fd00::1]:443", { HTTPS_PROXY: proxy, NO_PROXY: "fd00::/8" }, undefined],
    ["https://api", { HTTPS_PROXY: proxy, NO_PROXY: "*" }, undefined],
    ["https://127.0.0.1:6443", { HTTPS_PROXY: proxy }, undefined],
  ];
  for (const [server, environment, expected] of cases)
    assert.equal(proxyFor(server, environment), expected, server);
});
