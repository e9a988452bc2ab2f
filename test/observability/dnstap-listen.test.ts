/** `dnstap listen`: readers come over each kind of socket, and stay over a reload. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { connect as tlsConnect } from "node:tls";
import { CertificateAuthority } from "../support/certificates.ts";
import { ask } from "../support/dns-client.ts";
import { Capture, skipWithoutCapture as skip } from "../support/dnstap-capture.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan } from "../support/portolan.ts";

for (const kind of ["unix", "tcp", "tls"] as const) {
  test(`readers come to 'listen' over ${kind}, and stay over a reload`, { skip }, async () => {
    await using stack = new AsyncDisposableStack();
    const capture = stack.use(await Capture.start());
    const { folder } = capture;
    const authority = new CertificateAuthority();
    const own = authority.issue({ commonName: "tap", hosts: ["127.0.0.1"] });
    const reader = authority.issue({ commonName: "reader" });
    writeFileSync(join(folder, "cert.pem"), own.certificate);
    writeFileSync(join(folder, "key.pem"), own.key);
    writeFileSync(join(folder, "ca.pem"), authority.certificate);
    const port = await freePort();
    const path = join(folder, "tap.sock");
    const target = kind === "unix" ? `unix://${path}` : `${kind}://127.0.0.1:${port}`;
    // Without tls://, the certificate has no effect.
    const tls = `tls ${folder}/cert.pem ${folder}/key.pem ${folder}/ca.pem`;
    const corefile = (options: string) => (portOf: (name: string) => number) =>
      `.:${portOf("dns")} {
    bind 127.0.0.1
    dnstap listen ${target} full {
        ${tls}
        ${options}
    }
    whoami
}
`;
    await using server = await Portolan.start(corefile("identity before"));
    // A silent client, which must not block the others.
    const silent = kind === "unix" ? connect(path) : connect(port, "127.0.0.1");
    stack.defer(() => void silent.destroy());
    silent.on("error", () => undefined);
    const socket =
      kind === "unix"
        ? connect(path)
        : kind === "tcp"
          ? connect(port, "127.0.0.1")
          : tlsConnect({
              port,
              host: "127.0.0.1",
              ca: authority.certificate,
              cert: reader.certificate,
              key: reader.key,
            });
    stack.defer(() => void socket.destroy());
    await once(socket, kind === "tls" ? "secureConnect" : "connect");
    const toServer = new Promise((resolve) => socket.once("data", resolve));
    capture.bridge(socket);
    await toServer;
    /** Queries before the reader connects are lost. */
    const askUntilSeen = (name: string) => capture.holds(name, () => ask(server, `${name}.example.`));
    await askUntilSeen("first");
    assert.match(await server.reload(corefile("identity after")), /Reloading complete/);
    await askUntilSeen("second");
    // A Corefile that is refused takes nothing away.
    const log = await server.reload(
      (portOf) =>
        `${corefile("identity faulty")(portOf)}\nexample.org:${portOf("dns")} {\n bind 127.0.0.1\n file ${folder}/missing {\n reload 0\n }\n}\n`,
    );
    assert.match(log, /Restart failed/);
    await askUntilSeen("third");
    if (kind === "unix") assert.ok(statSync(path).isSocket());
    await server.stop();
    const lines = (await capture.lines()).join("\n");
    for (const name of ["first", "second", "third"])
      assert.match(lines, new RegExp(`^C[QR] .*"${name}\\.example\\." IN A`, "m"));
    assert.match(capture.text, /before[\s\S]*after/);
    assert.equal(existsSync(path), false);
  });
}

test("a reader without the certificate that is asked for gets nothing", { skip }, async () => {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "portolan-dnstap-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const authority = new CertificateAuthority();
  const own = authority.issue({ commonName: "tap", hosts: ["127.0.0.1"] });
  for (const [file, text] of Object.entries({
    cert: own.certificate,
    key: own.key,
    ca: authority.certificate,
  }))
    writeFileSync(join(folder, file), text);
  const port = await freePort();
  await using server = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    dnstap listen tls://127.0.0.1:${port} {
        tls ${folder}/cert ${folder}/key ${folder}/ca
    }
    whoami
}
`,
  );
  const socket = tlsConnect({ port, host: "127.0.0.1", ca: authority.certificate });
  stack.defer(() => void socket.destroy());
  let received = 0;
  socket.on("data", (octets) => {
    received += octets.length;
  });
  socket.on("error", () => undefined);
  await new Promise((resolve) => socket.once("close", resolve));
  assert.equal(received, 0);
  await ask(server, "fine.example.");
});

test("a server whose certificate for readers is missing starts, and readers come once the certificate is there", async () => {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "portolan-dnstap-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  await using server = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    dnstap listen tls://127.0.0.1:${port} {
        tls ${folder}/cert ${folder}/key
    }
    whoami
}
`,
  );
  await server.waitForLog(
    /\[ERROR\] plugin\/dnstap: No dnstap readers at .*: tls: error reading .*cert: no such file/,
  );
  await ask(server, "fine.example.");
  const authority = new CertificateAuthority();
  const own = authority.issue({ commonName: "tap", hosts: ["127.0.0.1"] });
  writeFileSync(join(folder, "key"), own.key);
  writeFileSync(join(folder, "cert"), own.certificate);
  const isServed = async (): Promise<boolean> => {
    const socket = tlsConnect({ port, host: "127.0.0.1", ca: authority.certificate });
    try {
      await once(socket, "secureConnect");
      return true;
    } catch {
      return false;
    } finally {
      socket.destroy();
    }
  };
  const deadline = performance.now() + 60_000;
  while (!(await isServed())) {
    assert.ok(performance.now() < deadline, server.log);
    await delay(100);
  }
});

test("a server that has no certificate for readers at all starts, and says so once", async () => {
  const port = await freePort();
  await using server = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {\n bind 127.0.0.1\n dnstap listen tls://127.0.0.1:${port}\n whoami\n}\n`,
  );
  await server.waitForLog(
    /\[ERROR\] plugin\/dnstap: No dnstap readers at .*: 'dnstap listen tls:\/\/…' needs 'tls CERT KEY'/,
  );
  await ask(server, "fine.example.");
  assert.match(
    server.log,
    /\[WARNING\] .*'dnstap listen tls:\/\/…' needs 'tls CERT KEY': no reader can connect/,
  );
});

test("a file in the way of the socket stays, and does not prevent the start", async () => {
  await using stack = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "portolan-dnstap-"));
  stack.defer(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "precious");
  writeFileSync(path, "data");
  const corefile = (portOf: (name: string) => number) =>
    `.:${portOf("dns")} {\n bind 127.0.0.1\n dnstap listen ${path}\n whoami\n}\n`;
  await using server = await Portolan.start(corefile);
  await server.waitForLog(/No dnstap readers at .*precious: .*precious exists and is not a socket/);
  await ask(server, "fine.example.");
  assert.equal(readFileSync(path, "utf8"), "data");
});

test("readers beyond 32 are turned away, counted, and told of once", async () => {
  await using stack = new AsyncDisposableStack();
  const port = await freePort();
  await using server = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${portOf("metrics")}
    dnstap listen tcp://127.0.0.1:${port} full
    whoami
}
`,
  );
  const reader = async () => {
    const socket = connect(port, "127.0.0.1");
    stack.defer(() => void socket.destroy());
    socket.on("error", () => undefined);
    await once(socket, "connect");
    return socket;
  };
  const readers = [];
  for (let count = 0; count < 32; count++) readers.push(await reader());
  const refused = async (): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${server.portOf("metrics")}/metrics`)).text();
    return Number(/^portolan_dnstap_refused_readers_total (\d+)$/m.exec(text)?.[1]);
  };
  assert.equal(await refused(), 0);
  for (let count = 0; count < 3; count++) {
    const late = await reader();
    if (!late.closed) await once(late, "close");
  }
  assert.equal(await refused(), 3);
  await server.waitForLog(/a dnstap reader is refused: 32 are connected already/);
  assert.equal(server.log.split("a dnstap reader is refused").length, 2);
  for (const socket of readers.slice(0, 31)) assert.equal(socket.closed, false);
});
