/**
 * Hostile clients of the encrypted listeners: each costs its own connection, is counted, and shuts out no other
 * client.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { after, before, describe, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { decodeMessage } from "../../src/dns/message.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { framed, queryOctets } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const authority = new CertificateAuthority();
const { certificate, key } = authority.issue({ commonName: "dns", hosts: ["127.0.0.1"] });
const MAX_CONNECTIONS = 20;

let server: Portolan;
before(async () => {
  server = await Portolan.start(
    (port) => `
.:${port("dns")} tls://.:${port("tls")} https://.:${port("https")} grpc://.:${port("grpc")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${port("metrics")}
    timeouts {
        read 2s
        write 2s
        idle 2s
    }
    https {
        max_connections ${MAX_CONNECTIONS}
    }
    tls cert.pem key.pem
    hosts {
        192.0.2.7 www.example.org
    }
    template IN TXT . {
        answer "{{ .Name }} 60 IN TXT ${"x".repeat(200)} ${"y".repeat(200)} ${"z".repeat(200)}"
    }
}
`,
    { files: { "cert.pem": certificate, "key.pem": key } },
  );
});
after(() => server[Symbol.asyncDispose]());

const QUERY = queryOctets("www.example.org.");
/** Long enough for a loaded machine, short enough for a test. */
const PATIENCE = 30_000;

async function tls(name: string, protocol: string): Promise<TLSSocket> {
  const socket = connectTls({
    host: "127.0.0.1",
    port: server.portOf(name),
    ca: authority.certificate,
    ALPNProtocols: [protocol],
  });
  await once(socket, "secureConnect");
  return socket.on("error", () => undefined);
}

/** Settles when the other side has ended the connection. */
async function ended(socket: Socket): Promise<void> {
  if (socket.destroyed || socket.readableEnded) return;
  const signal = AbortSignal.timeout(PATIENCE);
  socket.resume();
  await Promise.race([once(socket, "end", { signal }), once(socket, "close", { signal })]);
  socket.destroy();
}

/** A well-behaved client is answered on the same listener. */
async function othersAreAnswered(): Promise<void> {
  const session = connectHttp2(`https://127.0.0.1:${server.portOf("https")}`, { ca: authority.certificate });
  session.on("error", () => undefined);
  try {
    assert.deepEqual(await post(session), ["192.0.2.7"]);
  } finally {
    session.destroy();
  }
}

async function post(session: ClientHttp2Session): Promise<string[]> {
  const stream = session.request({ ":method": "POST", ":path": "/dns-query" });
  stream.end(QUERY);
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return decodeMessage(Buffer.concat(chunks)).answer.map(formatData);
}

const Frame = { DATA: 0, HEADERS: 1, RESET: 3, SETTINGS: 4, PING: 6, WINDOW_UPDATE: 8, CONTINUATION: 9 };
const END_STREAM = 1;
const END_HEADERS = 4;

function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array()): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function setting(id: number, value: number): Buffer {
  const octets = Buffer.alloc(6);
  octets.writeUInt16BE(id, 0);
  octets.writeUInt32BE(value, 2);
  return octets;
}

/** A header that no table has, without Huffman's code (RFC 7541 section 6.2.2). */
function literal(name: string, value: string): Buffer {
  const text = (words: string): Buffer => {
    const octets = Buffer.from(words);
    if (octets.length < 127) return Buffer.concat([Buffer.from([octets.length]), octets]);
    const rest = octets.length - 127;
    return Buffer.concat([Buffer.from([127, (rest & 127) | 128, rest >> 7]), octets]);
  };
  return Buffer.concat([Buffer.from([0]), text(name), text(value)]);
}

/** Where 0x83 and 0x87 stand for POST and https (RFC 7541 appendix A). */
const REQUEST = Buffer.concat([
  Buffer.from([0x83, 0x87]),
  literal(":path", "/dns-query"),
  literal(":authority", "dns"),
]);
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** A client that writes frames of its own. */
async function raw(name: "https" | "grpc", ...settings: readonly Buffer[]): Promise<TLSSocket> {
  const socket = await tls(name, "h2");
  socket.write(Buffer.concat([PREFACE, frame(Frame.SETTINGS, 0, 0, Buffer.concat(settings))]));
  return socket;
}

/** Writes for as long as the other side takes it. */
async function flood(socket: Socket, octets: Buffer): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  while (!socket.destroyed && !socket.readableEnded && performance.now() < deadline) {
    if (socket.write(octets)) await nextTurn();
    else await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => undefined);
  }
  assert.ok(performance.now() < deadline, "was never stopped");
}

const faults = (name: string): Promise<number> =>
  counted(server, "portolan_http_faulty_connections_total", new RegExp(`server="${name}:`));
const timeouts = (what: string): Promise<number> =>
  counted(server, "portolan_http_timeouts_total", new RegExp(`server="https:.*what="${what}"`));
const handshakes = (name: string): Promise<number> =>
  counted(server, "portolan_tls_failed_handshakes_total", new RegExp(`server="${name}:`));

describe("a handshake", () => {
  for (const name of ["tls", "https", "grpc"]) {
    test(`that never comes, breaks off or is invalid costs its connection: ${name}://`, async () => {
      const before = await handshakes(name);
      const connect = async (...octets: readonly Uint8Array[]): Promise<Socket> => {
        const socket = connectTcp(server.portOf(name), "127.0.0.1").on("error", () => undefined);
        await once(socket, "connect");
        for (const part of octets) socket.write(part);
        return socket;
      };
      // The head of a record with a ClientHello of 512 octets, which does not follow.
      const begun = Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
      const clients = [await connect(), await connect(begun), await connect(Buffer.alloc(100, 0x47))];
      await Promise.all(clients.map(ended));
      await untilTrue(async () => (await handshakes(name)) === before + 3);
      await othersAreAnswered();
    });
  }

  test("octet by octet has the time that all have, and no more", async () => {
    const before = await handshakes("tls");
    const socket = connectTcp(server.portOf("tls"), "127.0.0.1").on("error", () => undefined);
    const head = Buffer.from([22, 3, 1, 0x40, 0, 1, 0, 0x3f, 252, 3, 3]);
    socket.write(head);
    await flood(socket, Buffer.from([0]));
    await untilTrue(async () => (await handshakes("tls")) > before);
  });
});

describe("over HTTP/2", () => {
  for (const [title, name, octets] of [
    [
      "headers without an end (CONTINUATION)",
      "https",
      Buffer.concat([
        frame(Frame.HEADERS, 0, 1, REQUEST),
        ...Array.from({ length: 50 }, () => frame(Frame.CONTINUATION, 0, 1, literal("x", "y".repeat(900)))),
      ]),
    ],
    [
      "empty CONTINUATION frames",
      "grpc",
      Buffer.concat([
        frame(Frame.HEADERS, 0, 1, REQUEST),
        ...Array.from({ length: 500 }, () => frame(Frame.CONTINUATION, 0, 1)),
      ]),
    ],
    [
      "headers in a frame that is too long",
      "https",
      frame(Frame.HEADERS, END_HEADERS, 1, Buffer.alloc(70_000)),
    ],
    ["octets that are no frames", "grpc", Buffer.alloc(4096, 0xee)],
    ["DATA on a stream that is not there", "https", frame(Frame.DATA, 0, 5, Buffer.alloc(10))],
    [
      "a window that overflows",
      "https",
      frame(Frame.WINDOW_UPDATE, 0, 0, Buffer.from([0x7f, 255, 255, 255])),
    ],
  ] as const) {
    test(`${title}: ${name}://`, async () => {
      const before = await faults(name);
      const socket = await raw(name);
      socket.write(octets);
      await ended(socket);
      await untilTrue(async () => (await faults(name)) === before + 1);
      await othersAreAnswered();
    });
  }

  test("a header list longer than allowed is refused, and a bomb of references ends the connection", async () => {
    const socket = await raw("https");
    // One header of 4,000 octets into the table (0x40), and then references to it (0xbe) by the thousand.
    const bomb = Buffer.concat([
      REQUEST,
      Buffer.from([0x40]),
      literal("x", "y".repeat(3_900)).subarray(1),
      Buffer.alloc(10_000, 0xbe),
    ]);
    socket.write(frame(Frame.HEADERS, END_HEADERS | END_STREAM, 1, bomb));
    const [reply] = (await once(socket, "data")) as [Buffer];
    assert.ok(reply.length < 10_000);
    await ended(socket);
    await othersAreAnswered();
  });

  for (const name of ["https", "grpc"] as const) {
    test(`streams that are opened and reset at once end the connection: ${name}://`, async () => {
      const before = await faults(name);
      const socket = await raw(name);
      let stream = 1;
      const deadline = performance.now() + PATIENCE;
      while (!socket.destroyed && !socket.readableEnded && performance.now() < deadline) {
        const frames: Buffer[] = [];
        for (let count = 0; count < 100; count++, stream += 2)
          frames.push(
            frame(Frame.HEADERS, END_HEADERS, stream, REQUEST),
            frame(Frame.RESET, 0, stream, Buffer.from([0, 0, 0, 8])),
          );
        socket.resume().write(Buffer.concat(frames));
        await nextTurn();
      }
      assert.ok(performance.now() < deadline, "was never stopped");
      await untilTrue(async () => (await faults(name)) > before);
      await othersAreAnswered();
    });
  }

  for (const [title, octets] of [
    ["SETTINGS", frame(Frame.SETTINGS, 0, 0, setting(4, 65_535))],
    ["PING", frame(Frame.PING, 0, 0, Buffer.alloc(8))],
  ] as const) {
    for (const reads of [true, false]) {
      test(`${title} without end, answers ${reads ? "read" : "not read"}`, async () => {
        const before = await faults("https");
        const socket = await raw("https");
        if (reads) socket.resume();
        else socket.pause();
        await flood(socket, Buffer.concat(Array.from({ length: 500 }, () => octets)));
        socket.destroy();
        await untilTrue(async () => (await faults("https")) > before);
        await othersAreAnswered();
      });
    }
  }

  test("a request in frames of one octet, and in empty ones, has the time that all have", async () => {
    for (const octets of [Buffer.from("x"), Buffer.alloc(0)]) {
      const socket = await raw("https");
      socket.write(frame(Frame.HEADERS, END_HEADERS, 1, REQUEST));
      await flood(socket.resume(), frame(Frame.DATA, 0, 1, octets));
    }
    await othersAreAnswered();
  });

  test("a body longer than any message is refused, and the rest of it is not kept", async () => {
    const session = connectHttp2(`https://127.0.0.1:${server.portOf("https")}`, {
      ca: authority.certificate,
    });
    const before = server.residentMemory;
    const streams = Array.from({ length: 20 }, async () => {
      const stream = session
        .request({ ":method": "POST", ":path": "/dns-query" })
        .on("error", () => undefined)
        .resume();
      let status: number | undefined;
      // Node's client may keep a stream open that was answered and reset while it had more to send.
      const isDone = new Promise<void>((resolve) => {
        stream.once("close", resolve);
        stream.once("response", (headers) => {
          status = headers[":status"];
          resolve();
        });
      });
      for (let count = 0; count < 40 && status === undefined && !stream.destroyed; count++)
        if (!stream.write(Buffer.alloc(64 * 1024)))
          await Promise.race([new Promise((resolve) => stream.once("drain", resolve)), isDone]);
      await isDone;
      return status;
    });
    const statuses = await Promise.all(streams);
    session.destroy();
    // Where the machine is slow the time of a request is over before so much of it has come.
    for (const status of statuses) assert.ok(status === 400 || status === undefined, String(status));
    assert.ok(server.residentMemory - before < 60 * 1024 * 1024, "50 MB of bodies were kept");
  });

  test("who never opens its window, or never reads, keeps a bounded part, and is given up", async () => {
    const before = await timeouts("response");
    const text = queryOctets("www.example.org.", "TXT");
    const socket = await raw("https", setting(4, 0));
    const frames = Array.from({ length: 200 }, (_, count) =>
      Buffer.concat([
        frame(Frame.HEADERS, END_HEADERS, 2 * count + 1, REQUEST),
        frame(Frame.DATA, END_STREAM, 2 * count + 1, text),
      ]),
    );
    socket.write(Buffer.concat(frames));
    await untilTrue(async () => (await timeouts("response")) >= before + 200);
    await ended(socket);
    await othersAreAnswered();
  });

  test("connections that ask nothing make room for new ones, and go when they have been idle", async () => {
    const before = await counted(server, "portolan_dns_shed_total", /server="https:.*reason="connection"/);
    const idle = await Promise.all(Array.from({ length: MAX_CONNECTIONS }, () => raw("https")));
    for (let count = 0; count < 5; count++) await othersAreAnswered();
    assert.ok(
      (await counted(server, "portolan_dns_shed_total", /server="https:.*reason="connection"/)) > before,
    );
    await Promise.all(idle.map(ended));
  });
});

describe("over TLS", () => {
  test("who never reads its answers is hung up on", async () => {
    const unread = (): Promise<number> =>
      counted(server, "portolan_dns_shed_total", /server="tls:.*reason="unread"/);
    const before = await unread();
    const socket = await tls("tls", "dot");
    socket.pause();
    const queries = Array.from({ length: 200 }, (_, id) =>
      framed(queryOctets("www.example.org.", "TXT", id)),
    );
    await flood(socket, Buffer.concat(queries));
    await untilTrue(async () => (await unread()) > before);
    await othersAreAnswered();
  });
});
