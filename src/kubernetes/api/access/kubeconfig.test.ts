import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { after, describe, it } from "node:test";
import type { Caller } from "../../../../test/support/kubernetes-api/api-simulator.ts";
import {
  CredentialsFolder,
  kubeconfigText,
} from "../../../../test/support/kubernetes-api/credentials-folder.ts";
import { SourceTest } from "../../../../test/support/kubernetes-api/source-test.ts";
import { SocksProxy } from "../../../../test/support/socks-proxy.ts";
import { isObject } from "../../objects/json.ts";
import { ClusterAccessError } from "./access.ts";
import { parseKubeconfig } from "./kubeconfig.ts";

const credentials = new CredentialsFolder();
const { authority, serverTls } = credentials;
after(() => credentials[Symbol.dispose]());

describe("a kubeconfig", () => {
  type User = Record<string, unknown>;
  const client = authority.issue({ commonName: "system:dns" });
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const program = (script: string) => ({
    apiVersion: "client.authentication.k8s.io/v1",
    interactiveMode: "IfAvailable",
    command: process.execPath,
    args: ["-e", script],
  });
  const printed = (status: string) =>
    `console.log(JSON.stringify({apiVersion:"client.authentication.k8s.io/v1",kind:"ExecCredential",status:${status}}))`;

  const ways: readonly (readonly [title: string, user: () => User, admits: (caller: Caller) => boolean])[] = [
    ["a token", () => ({ token: "secret" }), ({ authorization }) => authorization === "Bearer secret"],
    [
      "a token file, before a token",
      () => ({ tokenFile: credentials.write("a-token", "filed"), token: "other" }),
      ({ authorization }) => authorization === "Bearer filed",
    ],
    [
      "user name and password",
      () => ({ username: "dns", password: "p:w" }),
      ({ authorization }) => authorization === `Basic ${base64("dns:p:w")}`,
    ],
    [
      "a client certificate in files",
      () => ({
        "client-certificate": credentials.write("c.crt", client.certificate),
        "client-key": credentials.write("c.key", client.key),
      }),
      ({ commonName }) => commonName === "system:dns",
    ],
    [
      "a client certificate in place",
      () => ({
        "client-certificate-data": base64(client.certificate),
        "client-key-data": base64(client.key),
      }),
      ({ commonName }) => commonName === "system:dns",
    ],
    [
      "a program that prints a token",
      () => ({
        exec: { ...program(printed("{token:process.env.WORD}")), env: [{ name: "WORD", value: "printed" }] },
      }),
      ({ authorization }) => authorization === "Bearer printed",
    ],
    [
      "a program that prints a certificate",
      () => {
        const status = { clientCertificateData: client.certificate, clientKeyData: client.key };
        return { exec: program(printed(JSON.stringify(status))) };
      },
      ({ commonName }) => commonName === "system:dns",
    ],
    [
      "the name of a user to act for",
      () => ({ token: "t", as: "jane", "as-groups": ["a", "b"], "as-user-extra": { "x/y": ["z"] } }),
      ({ headers, rawHeaders }) =>
        headers["impersonate-user"] === "jane" &&
        valuesOf("impersonate-group", rawHeaders).join("+") === "a+b" &&
        headers["impersonate-extra-x%2fy"] === "z",
    ],
    [
      "the name of a user in one group",
      () => ({ token: "t", as: "jane", "as-groups": ["a"] }),
      ({ rawHeaders }) => valuesOf("impersonate-group", rawHeaders).join("+") === "a",
    ],
  ];
  for (const [title, user, admits] of ways) {
    for (const http2 of [true, false]) {
      it(`signs in with ${title} at a server of HTTP/${http2 ? 2 : 1.1}`, async () => {
        await using test = await SourceTest.prepare({
          simulator: { tls: { ...serverTls, clientAuthority: authority.certificate }, http2 },
          access: (api) => credentials.access({ server: api.url, "certificate-authority": "ca.crt" }, user()),
        });
        test.api.admits = admits;
        test.source.start();
        await test.synced();
        assert.deepEqual(test.log.lines, []);
      });
    }
  }

  it("asks the program again when its token is refused", async () => {
    const counter = credentials.write("counter", "");
    const script = `fs.appendFileSync(${JSON.stringify(counter)},"x");${printed(`{token:"t"+fs.statSync(${JSON.stringify(counter)}).size}`)}`;
    await using test = await SourceTest.prepare({
      access: (api) => credentials.access({ server: api.url }, { exec: program(script) }),
    });
    test.api.admits = ({ authorization }) => authorization === "Bearer t2";
    test.source.start();
    await test.synced();
  });

  it("says why a program fails", async () => {
    const exec = {
      ...program(""),
      command: "portolan-no-such-program",
      installHint: "get it at example.com",
    };
    await using test = await SourceTest.start({
      access: (api) => credentials.access({ server: api.url }, { exec }),
    });
    await test.until(() => test.log.lines.length > 0);
    assert.match(
      test.log.lines[0] ?? "",
      /credential program portolan-no-such-program failed: .*ENOENT \(get it at example\.com\)/,
    );
  });

  it("knows servers under other names, authorities in place, and no verification at all", async () => {
    for (const cluster of [
      { "certificate-authority-data": base64(authority.certificate), "tls-server-name": "api.example" },
      { "insecure-skip-tls-verify": true },
    ]) {
      await using test = await SourceTest.start({
        simulator: { tls: serverTls },
        access: (api) => credentials.access({ server: api.url, ...cluster }, {}),
      });
      await test.synced();
    }
  });

  it("goes through a proxy", async () => {
    let tunnels = 0;
    const proxy = createServer().on("connect", (request, socket) => {
      tunnels++;
      const [host = "", port] = (request.url ?? "").split(":");
      const upstream = connect(Number(port), host, () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
      upstream.pipe(socket).pipe(upstream);
      upstream.on("error", () => socket.destroy());
      socket.on("error", () => upstream.destroy());
    });
    proxy.listen(0, "127.0.0.1");
    await once(proxy, "listening");
    const address = proxy.address();
    const port = isObject(address) ? address.port : 0;
    try {
      await using test = await SourceTest.start({
        simulator: { tls: serverTls },
        access: (api) =>
          credentials.access(
            { server: api.url, "certificate-authority": "ca.crt", "proxy-url": `http://127.0.0.1:${port}` },
            {},
          ),
      });
      await test.watching();
      assert.ok(tunnels > 0);
    } finally {
      proxy.closeAllConnections();
      proxy.close();
    }
  });

  for (const tls of [serverTls, undefined]) {
    it(`goes through a SOCKS proxy to a server ${tls === undefined ? "without" : "with"} TLS`, async () => {
      await using proxy = await SocksProxy.start("dns", "p@ss");
      await using test = await SourceTest.start({
        simulator: tls === undefined ? {} : { tls },
        access: (api) =>
          credentials.access(
            {
              server: api.url,
              "certificate-authority": "ca.crt",
              "proxy-url": `socks5://dns:p%40ss@127.0.0.1:${proxy.port}`,
            },
            {},
          ),
      });
      await test.watching();
      assert.ok(proxy.tunnels > 0);
    });
  }

  const refusals: readonly (readonly [
    title: string,
    text: string,
    context: string | undefined,
    reason: RegExp,
  ])[] = [
    ["what is no YAML", "clusters: [", undefined, /not valid YAML/],
    ["what is no mapping", "- a", undefined, /not a kubeconfig: expected a mapping/],
    ["no context", "clusters: []", undefined, /no current-context; name one/],
    [
      "a context that is not there",
      kubeconfigText({}, {}),
      "prod",
      /no context "prod" among its contexts: it has here/,
    ],
    ["no server", kubeconfigText({}, {}), undefined, /"" is not the URL of an API server/],
    [
      "a server that is no URL",
      kubeconfigText({ server: "ftp://x" }, {}),
      undefined,
      /"ftp:\/\/x" is not the URL/,
    ],
    [
      "a certificate without key",
      kubeconfigText({ server: "x" }, { "client-certificate": "c" }),
      undefined,
      /belong together/,
    ],
    [
      "an old auth-provider",
      kubeconfigText({ server: "x" }, { "auth-provider": { name: "gcp" } }),
      undefined,
      /auth-provider "gcp" is gone/,
    ],
    [
      "a program at a terminal",
      kubeconfigText({ server: "x" }, { exec: { ...program(""), interactiveMode: "Always" } }),
      undefined,
      /needs a terminal/,
    ],
    [
      "a program of another version",
      kubeconfigText({ server: "x" }, { exec: { command: "c", apiVersion: "v0" } }),
      undefined,
      /apiVersion "v0" is not one of/,
    ],
    [
      "groups without a name",
      kubeconfigText({ server: "x" }, { "as-groups": ["a"] }),
      undefined,
      /need 'as'/,
    ],
    [
      "a token of two lines",
      kubeconfigText({ server: "x" }, { token: "a\nb" }),
      undefined,
      /characters that no header can/,
    ],
    [
      "another kind of proxy",
      kubeconfigText({ server: "x", "proxy-url": "ftp://p" }, {}),
      undefined,
      /not an http, https or socks5 URL/,
    ],
    [
      "an authority that is not to count",
      kubeconfigText({ server: "x", "insecure-skip-tls-verify": true, "certificate-authority": "c" }, {}),
      undefined,
      /cannot be used together/,
    ],
  ];
  for (const [title, text, context, reason] of refusals) {
    it(`is refused with ${title}`, () => {
      assert.throws(
        () => parseKubeconfig(text, "/etc/kubeconfig", context, {}),
        (error) =>
          error instanceof ClusterAccessError &&
          error.message.startsWith("kubeconfig /etc/kubeconfig: ") &&
          reason.test(error.reason),
      );
    });
  }
});

/** What stands behind each of the fields of a name. */
function valuesOf(name: string, rawHeaders: readonly string[]): string[] {
  return rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === name);
}
