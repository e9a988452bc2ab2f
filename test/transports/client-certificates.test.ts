/**
 * Client authentication of encrypted listeners: client certificates in all five modes, and clients behind a proxy
 * that passes their identity on.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { after, before, describe, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { decodeMessage, type Message } from "../../src/dns/message.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { framed, queryOctets } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";

const authority = new CertificateAuthority();
const own = authority.issue({ commonName: "dns", hosts: ["127.0.0.1"] });
const clients = {
  nobody: undefined,
  stranger: new CertificateAuthority("another authority").issue({ commonName: "client" }),
  known: authority.issue({ commonName: "client" }),
};
type ClientName = keyof typeof clients;

/** The clients that are answered in each mode. */
const MODES = {
  nocert: ["nobody", "stranger", "known"],
  request: ["nobody", "stranger", "known"],
  require: ["stranger", "known"],
  verify_if_given: ["nobody", "known"],
  require_and_verify: ["known"],
} as const satisfies Readonly<Record<string, readonly ClientName[]>>;

let server: Portolan;
before(async () => {
  const blocks = (port: (name: string) => number): string[] =>
    Object.keys(MODES).map(
      (mode) => `
tls://.:${port(mode)} {
    bind 127.0.0.1
    tls cert.pem key.pem ca.pem {
        client_auth ${mode}
    }
    whoami
}`,
    );
  server = await Portolan.start(
    (port) => `
.:${port("dns")} {
    bind 127.0.0.1
    whoami
}
.:${port("proxied")} tls://.:${port("tls")} https://.:${port("https")} {
    bind 127.0.0.1
    proxyproto {
        allow 127.0.0.0/8
    }
    tls cert.pem key.pem
    whoami
}
grpc://.:${port("grpc")} {
    bind 127.0.0.1
    proxyproto {
        allow 127.0.0.0/8
    }
    whoami
}
${blocks(port).join("\n")}
`,
    { files: { "cert.pem": own.certificate, "key.pem": own.key, "ca.pem": authority.certificate } },
  );
});
after(() => server[Symbol.asyncDispose]());

/** Asks over TLS. @returns the reply; nothing where the connection ends instead */
async function askOver(socket: Socket): Promise<Message | undefined> {
  socket.on("error", () => undefined);
  socket.write(framed(queryOctets("www.example.org.")));
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of socket) {
      chunks.push(chunk as Buffer);
      const all = Buffer.concat(chunks);
      if (all.length >= 2 && all.length >= 2 + all.readUInt16BE(0)) return decodeMessage(all.subarray(2));
    }
  } catch {
    // Hung up on.
  } finally {
    socket.destroy();
  }
  return undefined;
}

describe("client_auth", () => {
  for (const [mode, welcome] of Object.entries(MODES)) {
    for (const name of Object.keys(clients) as ClientName[]) {
      for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
        const isWelcome = (welcome as readonly string[]).includes(name);
        test(`${mode}: ${name} is ${isWelcome ? "answered" : "turned away"} over ${maxVersion}`, async () => {
          const pair = clients[name];
          const socket = connectTls({
            host: "127.0.0.1",
            port: server.portOf(mode),
            ca: authority.certificate,
            maxVersion,
            ...(pair !== undefined && { cert: pair.certificate, key: pair.key }),
          });
          const reply = await askOver(socket);
          assert.equal(reply !== undefined, isWelcome);
        });
      }
    }
  }
});

describe("behind a proxy", () => {
  const HEADER = "PROXY TCP4 192.0.2.99 192.0.2.1 5353 853\r\n";

  /**
   * A connection on which a proxy has introduced its client.
   * @param together whether the first octets of the client come in one piece with what the proxy says
   */
  async function proxied(name: string, together: boolean): Promise<Duplex> {
    const socket = connectTcp({ port: server.portOf(name), host: "127.0.0.1", noDelay: true });
    // The server may reset it when the session ends.
    socket.on("error", () => undefined);
    await once(socket, "connect");
    let header = HEADER;
    if (!together) {
      socket.write(HEADER);
      header = "";
    }
    const proxy = new Duplex({
      read: () => undefined,
      write(octets: Buffer, _encoding, done) {
        socket.write(Buffer.concat([Buffer.from(header), octets]), done);
        header = "";
      },
      final: (done) => void socket.end(done),
    });
    socket.on("data", (octets) => proxy.push(octets));
    socket.on("close", () => proxy.destroy());
    return proxy.on("close", () => socket.destroy());
  }

  async function overHttp2(connection: Duplex, url: string): Promise<Message> {
    const session = connectHttp2(url, { createConnection: () => connection });
    session.on("error", () => undefined);
    const stream = session.request({ ":method": "POST", ":path": "/dns-query" });
    stream.end(queryOctets("www.example.org."));
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk as Buffer);
    await closed(session, connection);
    return decodeMessage(Buffer.concat(chunks));
  }

  async function closed(session: ClientHttp2Session, connection: Duplex): Promise<void> {
    const isClosed = once(connection, "close");
    session.destroy();
    await isClosed;
  }

  const KNOWN = { ca: authority.certificate, host: "127.0.0.1" };
  const ASKING: Readonly<Record<string, (together: boolean) => Promise<Message | undefined>>> = {
    dns: async (together) => askOver((await proxied("proxied", together)) as Socket),
    tls: async (together) => askOver(connectTls({ ...KNOWN, socket: await proxied("tls", together) })),
    https: async (together) => {
      const socket = connectTls({
        ...KNOWN,
        socket: await proxied("https", together),
        ALPNProtocols: ["h2"],
      });
      await once(socket, "secureConnect");
      return overHttp2(socket, "https://127.0.0.1");
    },
  };

  for (const [scheme, asking] of Object.entries(ASKING)) {
    for (const together of [true, false]) {
      test(`the client of ${scheme}:// is who the proxy says, its first octets ${together ? "with" : "behind"} that`, async () => {
        const reply = await asking(together);
        assert.match(reply?.additional.map(formatData).join() ?? "nothing", /192\.0\.2\.99/);
      });
    }
  }

  for (const together of [true, false]) {
    test(`HTTP/2 in the clear begins ${together ? "with" : "behind"} what the proxy says`, async () => {
      const connection = await proxied("grpc", together);
      const session = connectHttp2("http://127.0.0.1", { createConnection: () => connection });
      session.on("error", () => undefined);
      await once(session, "remoteSettings");
      await closed(session, connection);
    });
  }
});
