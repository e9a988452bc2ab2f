/** One question to a server on this machine. */
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { encodeMessage, makeQuery, Name, parseRecordType } from "../../src/dns/index.ts";
import { FrameSplitter, frame } from "../load/length-framing.ts";

export interface Asked {
  readonly port: number;
  readonly transport: "udp" | "tcp";
  readonly name: string;
  /** Such as "A". */
  readonly type: string;
  /** Milliseconds until this attempt is given up. */
  readonly patience: number;
}

const ID = 0x6265;

/** @returns the octets of the reply; undefined where none came in time, or the server does not listen */
export function ask(asked: Asked): Promise<Uint8Array | undefined> {
  const query = encodeQuery(asked);
  return asked.transport === "udp" ? askUdp(asked, query) : askTcp(asked, query);
}

/** The query that {@link ask} sends. */
export function encodeQuery({ name, type }: Pick<Asked, "name" | "type">): Uint8Array {
  const number = parseRecordType(type);
  if (number === undefined) throw new RangeError(`not a record type: ${type}`);
  return encodeMessage(makeQuery({ name: Name.parse(name), type: number }, { id: ID }));
}

function askUdp({ port, patience }: Asked, query: Uint8Array): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    const finish = (reply: Uint8Array | undefined): void => {
      clearTimeout(timer);
      socket.close();
      resolve(reply);
    };
    const timer = setTimeout(() => finish(undefined), patience);
    socket.once("message", finish);
    socket.once("error", () => finish(undefined));
    socket.connect(port, "127.0.0.1", () => socket.send(query));
  });
}

function askTcp({ port, patience }: Asked, query: Uint8Array): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    const splitter = new FrameSplitter();
    const finish = (reply: Uint8Array | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(reply);
    };
    const timer = setTimeout(() => finish(undefined), patience);
    socket.on("data", (chunk: Buffer) => splitter.push(chunk, (message) => finish(Uint8Array.from(message))));
    socket.on("error", () => finish(undefined));
    socket.on("close", () => finish(undefined));
    socket.write(frame(query));
  });
}
