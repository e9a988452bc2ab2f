/** Sends one query over a socket, for programs and tests that query their own server as any client would. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { decodeMessage, type Message } from "../../dns/message.ts";
import { readU16 } from "../../dns/octets.ts";

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

/** The server did not answer; the message has its address and the time waited. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** Milliseconds between two datagrams with the same query. */
const RESEND = 1_000;

/**
 * Sends a query as a datagram, and again each second, until it is answered. Skips datagrams from other addresses and
 * with another id.
 * @param octets the query
 * @throws NoAnswer, or the system's error for the address
 */
export async function askOverUdp(
  { host, port }: ServerAddress,
  octets: Uint8Array,
  milliseconds: number,
): Promise<Message> {
  const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
  const answer = Promise.withResolvers<Message>();
  socket.on("message", (bytes) => {
    if (bytes.length >= 2 && readU16(bytes, 0) === readU16(octets, 0)) decodeInto(answer, bytes);
  });
  // The system reports a closed port as an error. The server may be about to open it.
  socket.on("error", () => undefined);
  socket.connect(port, host);
  const send = (): void => socket.send(octets, () => undefined);
  const timers: NodeJS.Timeout[] = [];
  try {
    await once(socket, "connect");
    send();
    timers.push(
      setInterval(send, RESEND),
      setTimeout(() => answer.reject(noAnswer(host, port, milliseconds)), milliseconds),
    );
    return await answer.promise;
  } finally {
    for (const timer of timers) clearInterval(timer);
    socket.close();
  }
}

/**
 * Sends a query over a TCP connection of its own.
 * @throws NoAnswer, or the system's error for the connection
 */
export async function askOverTcp(
  { host, port }: ServerAddress,
  octets: Uint8Array,
  milliseconds: number,
): Promise<Message> {
  const socket = connect({ host, port, noDelay: true });
  const answer = Promise.withResolvers<Message>();
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => {
    chunks.push(chunk);
    const received = Buffer.concat(chunks);
    if (received.length >= 2 && received.length - 2 >= received.readUInt16BE(0))
      decodeInto(answer, received.subarray(2, 2 + received.readUInt16BE(0)));
  });
  socket.on("error", (error) => answer.reject(error));
  socket.on("close", () => answer.reject(new NoAnswer(`${host} port ${port} closed the connection`)));
  const timer = setTimeout(() => answer.reject(noAnswer(host, port, milliseconds)), milliseconds);
  const head = Buffer.alloc(2);
  head.writeUInt16BE(octets.length);
  socket.write(Buffer.concat([head, octets]));
  try {
    return await answer.promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

function decodeInto(answer: PromiseWithResolvers<Message>, bytes: Uint8Array): void {
  try {
    answer.resolve(decodeMessage(bytes));
  } catch (error) {
    answer.reject(error);
  }
}

function noAnswer(host: string, port: number, milliseconds: number): NoAnswer {
  return new NoAnswer(`no answer from ${host} port ${port} within ${milliseconds} ms`);
}
