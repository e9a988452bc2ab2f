/** One message by each of the ways that a server block may be reached. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { connect as connectTls } from "node:tls";
import { Client, credentials } from "@grpc/grpc-js";
import { exchangeUdp, framed, TcpClient } from "./dns-client.ts";
import type { PortOf } from "./free-ports.ts";
import { fromPacket, QUERY_METHOD, toPacket } from "./grpc-client.ts";
import { fetchH3, request as h3Request, settings } from "./h3-client.ts";
import { QuicCaller } from "./quic-client.ts";

/** The name in the certificate of the server. */
export const CERTIFIED_NAME = "dns.example";

/** @returns the octets of the reply, or a word for a missing one */
export type MessageWay = (
  port: PortOf,
  authority: string,
  message: Uint8Array,
) => Promise<Uint8Array | string>;

/** As a DNS message over QUIC goes: with the id 0. A signature knows the id before. */
function withoutId(message: Uint8Array): Uint8Array {
  return Uint8Array.from(message).fill(0, 0, 2);
}

export const MESSAGE_WAYS = {
  udp: async (port, _ca, message) =>
    (await exchangeUdp({ address: "127.0.0.1", port: port("dns") }, message)) ?? "nothing",
  async tcp(port, _ca, message) {
    await using client = await TcpClient.connect({ address: "127.0.0.1", port: port("dns") });
    client.send(message);
    return (await client.receive()) ?? "nothing";
  },
  async tls(port, ca, message) {
    const socket = connectTls({ host: "127.0.0.1", port: port("tls"), ca, servername: CERTIFIED_NAME });
    socket.on("error", () => undefined);
    try {
      await once(socket, "secureConnect");
      socket.write(framed(message));
      let octets = Buffer.alloc(0);
      while (octets.length < 2 || octets.length < 2 + octets.readUInt16BE(0)) {
        const [part] = await once(socket, "data");
        if (part instanceof Buffer) octets = Buffer.concat([octets, part]);
      }
      return octets.subarray(2);
    } finally {
      socket.destroy();
    }
  },
  async https(port, ca, message) {
    const path = { host: "127.0.0.1", port: port("https"), path: "/dns-query", method: "POST" };
    const asked = request({ ...path, ca, servername: CERTIFIED_NAME, agent: false });
    asked.setHeader("content-type", "application/dns-message");
    asked.on("error", () => undefined).end(message);
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    const parts: Buffer[] = [];
    for await (const part of response) parts.push(part as Buffer);
    return response.headers["content-type"] === "application/dns-message"
      ? Buffer.concat(parts)
      : `status ${response.statusCode}`;
  },
  async grpc(port, ca, message) {
    const trust = credentials.createSsl(Buffer.from(ca));
    const options = { "grpc.ssl_target_name_override": CERTIFIED_NAME };
    const client = new Client(`127.0.0.1:${port("grpc")}`, trust, options);
    try {
      const { promise, resolve } = Promise.withResolvers<Uint8Array | string>();
      const octets = (packet: Buffer): Buffer => Buffer.from(packet);
      client.makeUnaryRequest(QUERY_METHOD, toPacket, octets, message, (error, packet) =>
        resolve(error === null ? (packet ? fromPacket(packet) : "nothing") : error.details),
      );
      return await promise;
    } finally {
      client.close();
    }
  },
  async quic(port, ca, message) {
    const caller = await QuicCaller.open(ca);
    try {
      const call = await caller.dial(port("quic"), "doq", CERTIFIED_NAME).connected();
      return (await call.ask(framed(withoutId(message))))?.subarray(2) ?? "nothing";
    } finally {
      caller.close();
    }
  },
  async https3(port, ca, message) {
    const caller = await QuicCaller.open(ca);
    try {
      const call = await caller.dial(port("https3"), "h3", CERTIFIED_NAME).connected();
      settings(call);
      const response = await fetchH3(call, h3Request("POST", "/dns-query", message));
      if (response === undefined) return "nothing";
      return response.status === 200 ? response.body : `status ${response.status}`;
    } finally {
      caller.close();
    }
  },
} as const satisfies Readonly<Record<string, MessageWay>>;
