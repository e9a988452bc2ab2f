/** DNS over gRPC with the library that most programs on Node use for gRPC. */
import type { Client, ServiceError } from "@grpc/grpc-js";
import { decodeMessage, type Message } from "../../src/dns/message.ts";
import { queryOctets } from "./dns-client.ts";

export const QUERY_METHOD = "/coredns.dns.DnsService/Query";

/** `message DnsPacket { bytes msg = 1; }`, written by hand once more so that no mistake of the program meets its own twin. */
export function toPacket(message: Uint8Array): Buffer {
  const length: number[] = [];
  for (let rest = message.length; ; rest >>= 7) {
    length.push(rest < 128 ? rest : (rest & 127) | 128);
    if (rest < 128) break;
  }
  return Buffer.from([10, ...length, ...message]);
}

export function fromPacket(packet: Buffer): Buffer {
  let start = 1;
  while ((packet[start++] as number) >= 128);
  return packet.subarray(start);
}

/** Asks once. @throws ServiceError of grpc-js */
export function askByGrpc(client: Client, name: string, type = "A"): Promise<Message> {
  return new Promise((resolve, reject) => {
    const answered = (error: ServiceError | null, reply?: Buffer): void => {
      if (reply === undefined) reject(error ?? new Error("neither a reply nor an error"));
      else resolve(decodeMessage(fromPacket(reply)));
    };
    client.makeUnaryRequest(
      QUERY_METHOD,
      toPacket,
      (octets) => Buffer.from(octets),
      queryOctets(name, type),
      answered,
    );
  });
}
