/** One update of a zone by each of the ways that a server block may be reached. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { connect as connectTls } from "node:tls";
import { Client, credentials } from "@grpc/grpc-js";
import { decodeMessage } from "../../src/dns/message.ts";
import { rcodeName } from "../../src/dns/numbers.ts";
import { exchangeUdp, framed, TcpClient } from "./dns-client.ts";
import type { PortOf } from "./free-ports.ts";
import { fromPacket, QUERY_METHOD, toPacket } from "./grpc-client.ts";
import { QuicCaller } from "./quic-client.ts";
import { octetsOf, SECRET } from "./update-messages.ts";

const ZONE = "example.org.";
const NAME = "dns.example";

/** The zone by all of them, and another block on the same port that takes no updates. `cert.pem` and `key.pem` are the server's. */
export function updateTransports(port: PortOf): string {
  const keys = ["tls", "https", "grpc", "quic"].map((scheme) => `${scheme}://${ZONE}:${port(scheme)}`);
  return `${ZONE}:${port("dns")} ${keys.join(" ")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    tsig {
        secret all.example. ${SECRET}
    }
    dynupdate ${ZONE} {
        file db
        allow all.example. * *
    }
}
other.test:${port("dns")} {
    bind 127.0.0.1
    whoami
}
`;
}

function update(zone = ZONE): Uint8Array {
  return octetsOf({ title: "", updates: ["new 60 IN A 192.0.2.9"] }, zone);
}

function rcodeIn(reply: Uint8Array | undefined): string {
  return reply === undefined ? "nothing" : rcodeName(decodeMessage(reply).rcode);
}

type Way = (port: PortOf, authority: string) => Promise<string>;

/** The rcode of the reply, or a word for a missing one. */
export const UPDATE_WAYS: Readonly<Record<string, Way>> = {
  udp: async (port) => rcodeIn(await exchangeUdp({ address: "127.0.0.1", port: port("dns") }, update())),
  async tcp(port) {
    await using client = await TcpClient.connect({ address: "127.0.0.1", port: port("dns") });
    client.send(update());
    return rcodeIn(await client.receive());
  },
  async tls(port, ca) {
    const socket = connectTls({ host: "127.0.0.1", port: port("tls"), ca, servername: NAME });
    socket.on("error", () => undefined);
    try {
      await once(socket, "secureConnect");
      socket.write(framed(update()));
      let octets = Buffer.alloc(0);
      while (octets.length < 2 || octets.length < 2 + octets.readUInt16BE(0)) {
        const [part] = await once(socket, "data");
        if (part instanceof Buffer) octets = Buffer.concat([octets, part]);
      }
      return rcodeIn(octets.subarray(2));
    } finally {
      socket.destroy();
    }
  },
  async https(port, ca) {
    const path = { host: "127.0.0.1", port: port("https"), path: "/dns-query", method: "POST" };
    const asked = request({ ...path, ca, servername: NAME, agent: false });
    asked.setHeader("content-type", "application/dns-message");
    asked.on("error", () => undefined).end(update());
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    if (response.headers["content-type"] !== "application/dns-message")
      return `status ${response.statusCode}`;
    return rcodeIn(Buffer.concat(parts));
  },
  async grpc(port, ca) {
    const trust = credentials.createSsl(Buffer.from(ca));
    const options = { "grpc.ssl_target_name_override": NAME };
    const client = new Client(`127.0.0.1:${port("grpc")}`, trust, options);
    try {
      const { promise, resolve } = Promise.withResolvers<string>();
      const octets = (packet: Buffer): Buffer => Buffer.from(packet);
      client.makeUnaryRequest(QUERY_METHOD, toPacket, octets, update(), (error, packet) =>
        resolve(error === null ? rcodeIn(packet && fromPacket(packet)) : error.details),
      );
      return await promise;
    } finally {
      client.close();
    }
  },
  async quic(port, ca) {
    const caller = await QuicCaller.open(ca);
    try {
      const call = await caller.dial(port("quic"), "doq", NAME).connected();
      const message = update();
      // DNS over QUIC has the id 0. The signature knows the one before.
      message.fill(0, 0, 2);
      const heard = await call.ask(framed(message));
      return rcodeIn(heard?.subarray(2));
    } finally {
      caller.close();
    }
  },
  "another block": async (port) =>
    rcodeIn(await exchangeUdp({ address: "127.0.0.1", port: port("dns") }, update("other.test."))),
};
