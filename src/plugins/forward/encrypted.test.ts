/** Upstreams over TLS and HTTPS. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { CertificateAuthority, type IssuedCertificate } from "../../../test/support/certificates.ts";
import { EdnsOptionCode, Rcode } from "../../dns/index.ts";
import { SetupError } from "../../plugin/index.ts";
import {
  AUTHORITY,
  EncryptedServer,
  type EncryptedServerOptions,
  GOOD,
} from "../../upstream/fixtures/encrypted-server.ts";
import { HONEST, type Script, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { until } from "../../upstream/fixtures/test-request.ts";
import { ForwardBench, forwarderOf, metricLines, withShortAddress } from "./fixtures/forward-bench.ts";

const bench = new ForwardBench();
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  await bench.stop();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

let folder = "";
before(() => {
  folder = mkdtempSync(join(tmpdir(), "forward-tls-"));
  writeFileSync(join(folder, "ca.pem"), AUTHORITY.certificate);
  writeFileSync(join(folder, "cert.pem"), GOOD.certificate);
  writeFileSync(join(folder, "key.pem"), GOOD.key);
  writeFileSync(join(folder, "rubbish.pem"), "rubbish\n");
  const other = AUTHORITY.issue({ commonName: "other", hosts: ["other.example"] });
  writeFileSync(join(folder, "other-key.pem"), other.key);
});
after(() => rmSync(folder, { recursive: true }));

type Scheme = "tls" | "https";

async function serve(
  scheme: Scheme,
  script: Script = HONEST,
  options: EncryptedServerOptions = {},
): Promise<EncryptedServer> {
  const server = await EncryptedServer[scheme](script, options);
  cleanups.push(() => server.stop());
  return server;
}

function corefile(to: string, ...lines: readonly string[]): string {
  return `forward . ${to} {\ntls ${join(folder, "ca.pem")}\n${lines.join("\n")}\n}`;
}

/** The error that the log would show for a failed query. */
async function failure(text: string): Promise<string> {
  const test = await bench.start(text);
  const outcome = await test.outcome({ name: "example.org." });
  assert.ok(outcome.kind === "failed");
  assert.equal(outcome.rcode, Rcode.SERVFAIL);
  return outcome.error?.message ?? "";
}

for (const scheme of ["tls", "https"] as const) {
  const protocol = scheme === "tls" ? "tcp-tls" : "https";
  /** Over HTTPS the message begins with the words of Go's HTTP client. */
  const said = (server: { readonly text: string }, message: string): string =>
    scheme === "tls" ? message : `Post "https://${server.text}/dns-query": ${message}`;

  describe(`upstreams over ${scheme}://`, () => {
    it("answer clients of UDP and TCP over one connection, with queries padded and answers that are not", async () => {
      const padding = { code: EdnsOptionCode.PADDING, data: new Uint8Array(100) };
      const server = await serve(scheme, (asked) =>
        asked.answer({
          answer: [`${asked.name} 60 IN A 192.0.2.1`],
          message: { edns: { udpSize: 512, version: 0, dnssecOk: false, options: [padding] } },
        }),
      );
      const test = await bench.start(corefile(`${scheme}://${server.text}`));
      for (const transport of ["udp", "tcp"] as const) {
        for (const name of ["a.example.", "a-rather-longer-name.example."]) {
          const plain = await test.ask({ name, transport });
          assert.deepEqual(plain.answer, [`${name} 60 IN A 192.0.2.1`]);
          assert.equal(plain.reply.edns, undefined);
          const { reply } = await test.ask({ name, transport, edns: {} });
          assert.deepEqual(reply.edns?.options, []);
        }
      }
      assert.equal(server.connections.length, 1);
      for (const { bytes, message } of server.asked) {
        assert.equal(bytes.length, 128);
        assert.equal(message.edns?.options[0]?.code, EdnsOptionCode.PADDING);
        if (scheme === "https") assert.equal(message.id, 0);
      }
      const labels = `{proxy_name="forward",to="${server.text}",proto="${protocol}"}`;
      assert.deepEqual(await metricLines(test, "coredns_proxy_conn_cache_hits_total"), [
        `coredns_proxy_conn_cache_hits_total${labels} 7`,
      ]);
    });

    it("answer many queries at once, each with its own", async () => {
      const server = await serve(scheme, (asked) => {
        const number = Number(/^host-(\d+)/.exec(asked.name)?.[1]);
        setImmediate(() =>
          asked.answer({ answer: [`${asked.name} 60 IN A 10.0.${number >> 8}.${number & 255}`] }),
        );
      });
      const test = await bench.start(corefile(`${scheme}://${server.text}`));
      const answers = Array.from({ length: 500 }, (_, n) => test.ask({ name: `host-${n}.example.` }));
      for (const [n, { answer }] of (await Promise.all(answers)).entries())
        assert.deepEqual(answer, [`host-${n}.example. 60 IN A 10.0.${n >> 8}.${n & 255}`]);
      assert.ok(server.connections.length <= 8);
    });

    it("are verified against the name in the option or after the address", async () => {
      const certificate = AUTHORITY.issue({ commonName: "x", hosts: ["dns.example"] });
      const server = await serve(scheme, HONEST, { certificate });
      for (const text of [
        corefile(`${scheme}://${server.text}`, "tls_servername dns.example"),
        corefile(`${scheme}://127.0.0.1%dns.example:${server.address.port}`),
      ]) {
        const test = await bench.start(text);
        assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
      }
    });

    it("resume a TLS session", async () => {
      const server = await serve(scheme);
      const test = await bench.start(corefile(`${scheme}://${server.text}`, "expire 1s"));
      for (let round = 0; round < 2; round++) {
        await test.ask({ name: "example.org." });
        // Session tickets arrive after the handshake.
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        test.clock.advance(3_000);
        await until(() => server.connections.every((socket) => socket.destroyed), "it is closed");
      }
      assert.deepEqual(server.resumed, [false, true]);
    });

    const expired = { notBefore: new Date("2020-01-01"), notAfter: new Date("2021-01-01") };
    const wrong: readonly (readonly [
      what: string,
      certificate: () => IssuedCertificate,
      lines: readonly string[],
      message: string,
    ])[] = [
      [
        "for another name",
        () => GOOD,
        ["tls_servername other.test"],
        "tls: failed to verify certificate: x509: certificate is valid for dns.example, not other.test",
      ],
      [
        "for another address",
        () => AUTHORITY.issue({ commonName: "x", hosts: ["192.0.2.1"] }),
        [],
        "tls: failed to verify certificate: x509: certificate is valid for 192.0.2.1, not 127.0.0.1",
      ],
      [
        "for names and no address",
        () => AUTHORITY.issue({ commonName: "127.0.0.1", hosts: ["dns.example"] }),
        [],
        "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
      ],
      [
        "with a name in its subject alone",
        () => AUTHORITY.issue({ commonName: "dns.example" }),
        ["tls_servername dns.example"],
        "tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match dns.example",
      ],
      [
        "of an unknown authority",
        () => new CertificateAuthority("stranger").issue({ commonName: "x", hosts: ["127.0.0.1"] }),
        [],
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
      ],
      [
        "that has expired",
        () => AUTHORITY.issue({ commonName: "x", hosts: ["127.0.0.1"], ...expired }),
        [],
        "tls: failed to verify certificate: x509: certificate has expired or is not yet valid",
      ],
    ];
    for (const [what, certificate, lines, message] of wrong) {
      it(`with a certificate ${what} are not asked`, async () => {
        const server = await serve(scheme, HONEST, { certificate: certificate() });
        const text = corefile(`${scheme}://${server.text}`, ...lines);
        assert.equal(await failure(text), said(server, message));
        assert.equal(server.asked.length, 0);
      });
    }

    it("are never asked without encryption", async () => {
      const received: Buffer[] = [];
      const plain = createServer((socket) => {
        socket.on("data", (chunk) => {
          received.push(chunk);
          socket.write("HTTP/1.1 400 Bad Request\r\n\r\n");
        });
        socket.on("error", () => undefined);
      });
      const text = await listening(plain);
      const message = await failure(corefile(`${scheme}://${text}`));
      assert.equal(message, said({ text }, "tls: first record does not look like a TLS handshake"));
      for (const chunk of received) assert.ok(!chunk.includes("example"), "the name was sent");
    });

    it("without a listener report it, and are not tried for every query", async () => {
      const server = await serve(scheme);
      await server.stop();
      cleanups.pop();
      const test = await bench.start(corefile(`${scheme}://${server.text}`, "max_fails 0"));
      for (let count = 0; count < 20; count++) {
        const outcome = await test.outcome({ name: "example.org." });
        assert.ok(outcome.kind === "failed");
        assert.equal(
          outcome.error?.message,
          said(server, `dial tcp ${server.text}: connect: connection refused`),
        );
      }
      const [misses] = await metricLines(test, "coredns_proxy_conn_cache_misses_total");
      assert.match(misses ?? "", / [1-3]$/);
    });

    it("whose handshake never ends cost a query its time-out, and the next upstream answers", async () => {
      const sockets: unknown[] = [];
      const mute = createServer((socket) => {
        sockets.push(socket);
        socket.on("error", () => undefined);
      });
      const text = await listening(mute);
      const well = await serve(scheme);
      const test = await bench.start(
        corefile(`${scheme}://${text} ${scheme}://${well.text}`, "policy sequential"),
      );
      const answer = test.ask({ name: "example.org." });
      await until(() => sockets.length > 0, "it is asked");
      test.clock.advance(2_101);
      assert.deepEqual((await answer).answer, ["example.org. 60 IN A 192.0.2.1"]);
      await until(() => {
        test.clock.advance(1_000);
        return forwarderOf(test).upstreams[0]?.health.isDown(2) === true;
      }, "it is down");
    });

    for (const [what, script] of [
      ["never answer", SILENT],
      ["never read", ((asked) => asked.socket?.pause()) satisfies Script],
    ] as const) {
      it(`that ${what} cost each query one time-out`, async () => {
        const silent = await serve(scheme, script);
        const well = await serve(scheme);
        const test = await bench.start(
          corefile(`${scheme}://${silent.text} ${scheme}://${well.text}`, "policy sequential", "max_fails 0"),
        );
        const answers = Array.from({ length: 50 }, (_, n) => test.ask({ name: `n${n}.example.` }));
        await silent.receives(1);
        let done = false;
        const all = Promise.all(answers).finally(() => {
          done = true;
        });
        await until(() => {
          if (!done) test.clock.advance(1);
          return done;
        }, "all are answered");
        for (const { rcode } of await all) assert.equal(rcode, Rcode.NOERROR);
        const names = silent.asked.map(({ name }) => name);
        assert.equal(new Set(names).size, names.length, "nothing went twice to the silent one");
      });
    }

    it("that close a connection are asked over another one", async () => {
      const server = await serve(scheme);
      const test = await bench.start(corefile(`${scheme}://${server.text}`));
      await test.ask({ name: "example.org." });
      for (const socket of server.connections) socket.destroy();
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
      assert.equal(server.connections.length, 2);
    });

    it("are probed over the same transport after a failure, until they answer", async () => {
      let broken = true;
      const server = await serve(scheme, (asked) => {
        if (broken && asked.name !== ".") asked.send(withShortAddress(asked));
        else HONEST(asked);
      });
      const test = await bench.start(corefile(`${scheme}://${server.text}`));
      assert.equal((await test.outcome({ name: "example.org." })).kind, "failed");
      broken = false;
      await until(() => server.asked.some(({ name }) => name === "."), "it is probed");
      await until(() => forwarderOf(test).upstreams[0]?.health.checking === false, "it is well");
    });
  });
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const sockets = new Set<{ destroy(): void }>();
  server.on("connection", (socket) => sockets.add(socket));
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const place = server.address();
  return `127.0.0.1:${typeof place === "object" && place !== null ? place.port : 0}`;
}

describe("upstreams over https://", () => {
  it("get POST or GET, at the path in the configuration", async () => {
    const server = await serve("https");
    for (const [word, line, expected] of [
      ["", "", { method: "POST", path: "/dns-query", contentType: "application/dns-message" }],
      ["/resolve", "doh_method POST", { method: "POST", path: "/resolve" }],
      ["", "doh_method GET", { method: "GET" }],
    ] as const) {
      const test = await bench.start(corefile(`https://${server.text}${word}`, line));
      assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
      const seen = server.requests.at(-1);
      assert.equal(seen?.authority, server.text);
      for (const [key, value] of Object.entries(expected)) assert.equal(Object(seen)[key], value);
      if (line.endsWith("GET")) assert.match(seen?.path ?? "", /^\/dns-query\?dns=AAAB[\w-]+$/);
    }
  });

  it("may be names, with addresses that need no lookup", async () => {
    const server = await serve("https");
    const test = await bench.start(
      corefile(`https://dns.example:${server.address.port}/dns-query`, "bootstrap DNS.example. 127.0.0.1"),
    );
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
    assert.equal(server.requests[0]?.authority, `dns.example:${server.address.port}`);
  });

  const faults: readonly (readonly [what: string, respond: EncryptedServerOptions["respond"], RegExp])[] = [
    [
      "another status",
      (stream) => stream.respond({ ":status": 503 }, { endStream: true }),
      /HTTP status 503$/,
    ],
    [
      "another content type",
      (stream) => {
        stream.respond({ ":status": 200, "content-type": "text/html" });
        stream.end("<p>");
      },
      /content type text\/html, not application\/dns-message$/,
    ],
    [
      "more than a message can have",
      (stream) => {
        stream.respond({ ":status": 200, "content-type": "application/dns-message" });
        stream.end(Buffer.alloc(70_000));
      },
      /response longer than a DNS message$/,
    ],
    [
      "an answer to another question",
      (stream, asked) => {
        stream.respond({ ":status": 200, "content-type": "application/dns-message" });
        stream.end(asked.encode({ message: { questions: [] } }));
      },
      /reply to another question$/,
    ],
    ["a reset", (stream) => stream.close(2), /stream error: stream ID \d+; code 2$/],
  ];
  for (const [what, respond, message] of faults) {
    it(`that answer with ${what} have failed`, async () => {
      const server = await serve("https", HONEST, respond === undefined ? {} : { respond });
      assert.match(await failure(corefile(`https://${server.text}`, "max_fails 0")), message);
    });
  }

  it("without HTTP/2 are reported", async () => {
    const server = await serve("tls", SILENT);
    const message = await failure(corefile(`https://${server.text}`, "max_fails 0"));
    assert.equal(message, `Post "https://${server.text}/dns-query": the server does not speak HTTP/2`);
  });

  it("that refuse a stream, or send GOAWAY, are tried again", async () => {
    let refusals = 1;
    const server = await serve("https", HONEST, {
      respond: (stream, asked) => {
        if (refusals-- > 0) {
          stream.close(7);
          return;
        }
        stream.respond({ ":status": 200, "content-type": "application/dns-message" });
        stream.end(asked.encode({ answer: [`${asked.name} 60 IN A 192.0.2.1`] }));
        stream.session?.goaway(0);
      },
    });
    const test = await bench.start(corefile(`https://${server.text}`, "max_fails 0"));
    for (let count = 0; count < 3; count++)
      assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
  });
});

describe("the options of encrypted upstreams", () => {
  const refused: readonly (readonly [lines: readonly string[], message: RegExp])[] = [
    [["tls nope.pem"], /^tls: error reading nope\.pem: no such file or directory/],
    [["tls $/rubbish.pem"], /^tls: could not read root certs$/],
    [["tls $/cert.pem $/rubbish.pem"], /^tls: could not load TLS cert: the key file holds no private key/],
    [["tls $/rubbish.pem $/other-key.pem"], /^tls: could not load TLS cert: the certificate file holds no/],
    [
      ["tls $/cert.pem $/other-key.pem $/ca.pem"],
      /^tls: could not load TLS cert: tls: private key does not match public key$/,
    ],
  ];
  for (const [lines, message] of refused) {
    it(`are refused at the start: ${lines.join("; ")}`, async () => {
      const text = `forward . tls://127.0.0.1 {\n${lines.join("\n").replaceAll("$", folder)}\n}`;
      await assert.rejects(bench.start(text), (error) => {
        assert.ok(error instanceof SetupError);
        assert.match(error.message, message);
        return true;
      });
    });
  }

  it("show a certificate to servers that ask for one", async () => {
    const server = await serve("tls", HONEST, {
      requestCert: true,
      rejectUnauthorized: true,
      ca: AUTHORITY.certificate,
    });
    const without = await failure(corefile(`tls://${server.text}`, "max_fails 0"));
    assert.match(without, /^remote error: tls: certificate required$|^EOF$/);
    const files = ["cert.pem", "key.pem", "ca.pem"].map((file) => join(folder, file)).join(" ");
    const test = await bench.start(`forward . tls://${server.text} {\ntls ${files}\n}`);
    assert.equal((await test.ask({ name: "example.org." })).rcode, Rcode.NOERROR);
  });
});
