/**
 * DNS servers on loopback that replace the upstreams of a Corefile. `forward` queries them over real sockets, so everything but the
 * addresses is as in production.
 */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { createServer, type Server, type Socket as TcpSocket } from "node:net";
import { decodeMessage, encodeMessage } from "../../dns/message.ts";
import { Flag, Rcode } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { WireError } from "../../dns/wire-reader.ts";
import { type ScriptedUpstream, UpstreamScript } from "./upstream-script.ts";

/** One query that an upstream received. */
export interface AskedUpstream {
  /** The TO word. */
  readonly upstream: string;
  /** `www.example.com. A`. */
  readonly question: string;
  /** Whether the test has no answers for this upstream. */
  readonly isUnscripted: boolean;
}

const HOST = "127.0.0.1";
const MAX_ATTEMPTS = 5;

export class FakeUpstreams {
  /** Since the last {@link forget}, in order. */
  readonly asked: AskedUpstream[] = [];
  readonly #scripts: ReadonlyMap<string, ScriptedUpstream>;
  readonly #sockets = new Map<string, FakeSocket>();

  private constructor(scripts: ReadonlyMap<string, ScriptedUpstream>) {
    this.#scripts = new Map(Array.from(scripts, ([word, script]) => [normalized(word), script]));
  }

  /**
   * Opens a server for each TO word.
   * @param scripts by TO word; `*` for all other upstreams
   */
  static async open(
    words: readonly string[],
    scripts: ReadonlyMap<string, ScriptedUpstream>,
  ): Promise<FakeUpstreams> {
    const upstreams = new FakeUpstreams(scripts);
    try {
      for (const word of words) await upstreams.#open(word);
    } catch (error) {
      await upstreams.close();
      throw error;
    }
    return upstreams;
  }

  /** Returns the address that replaces a TO word. */
  substitute(word: string): string {
    const socket = this.#sockets.get(normalized(word));
    return socket === undefined ? word : `${HOST}:${socket.port}`;
  }

  /** Replaces the addresses of these servers in a text with the words of the Corefile. */
  original(text: string): string {
    let shown = text;
    for (const { word, port } of this.#sockets.values()) shown = shown.replaceAll(`${HOST}:${port}`, word);
    return shown;
  }

  /** Whether some upstream never answers, so that the clock has to move. */
  get someAreDown(): boolean {
    return [...this.#scripts.values()].some(({ isDown }) => isDown);
  }

  forget(): void {
    this.asked.length = 0;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets.values()) await socket.close();
    this.#sockets.clear();
  }

  async #open(word: string): Promise<void> {
    const key = normalized(word);
    if (this.#sockets.has(key)) return;
    const given = this.#scripts.get(key) ?? this.#scripts.get("*");
    const { script, isDown } = given ?? { script: new UpstreamScript(Rcode.REFUSED), isDown: false };
    const answer = (octets: Uint8Array, limit: number): Uint8Array | undefined => {
      const query = decodeMessage(octets);
      const [question] = query.questions;
      if (question === undefined) return undefined;
      const { name, type } = question;
      const text = `${name} ${recordTypeName(type)}`;
      this.asked.push({ upstream: word, question: text, isUnscripted: given === undefined });
      if (isDown) return undefined;
      const reply = script.answer(query);
      const encoded = encodeMessage(reply);
      if (encoded.length <= limit) return encoded;
      return encodeMessage({ ...reply, flags: reply.flags | Flag.TC, answer: [], authority: [] });
    };
    this.#sockets.set(key, await FakeSocket.open(word, answer));
  }
}

/** Normalizes a TO word: equal for words that mean the same server. */
export function normalized(word: string): string {
  return word
    .toLowerCase()
    .replace(/^dns:\/\//, "")
    .replace(/^([\d.]+):53$/, "$1")
    .replace(/^\[(.+)\](?::53)?$/, "$1");
}

/** @returns the reply, at most `limit` octets long; `undefined` to stay silent */
type Answerer = (octets: Uint8Array, limit: number) => Uint8Array | undefined;

/** UDP and TCP on one port. */
class FakeSocket {
  readonly word: string;
  readonly port: number;
  readonly #udp: Socket;
  readonly #tcp: Server;
  readonly #connections = new Set<TcpSocket>();

  private constructor(word: string, port: number, udp: Socket, tcp: Server, answer: Answerer) {
    this.word = word;
    this.port = port;
    this.#udp = udp;
    this.#tcp = tcp;
    udp.on("message", (octets, { address, port: to }) => {
      const reply = unlessMalformed(() => answer(octets, udpLimit(octets)));
      if (reply !== undefined) udp.send(reply, to, address);
    });
    tcp.on("connection", (connection) => this.#serve(connection, answer));
  }

  static async open(word: string, answer: Answerer): Promise<FakeSocket> {
    for (let attempt = 1; ; attempt++) {
      const tcp = createServer();
      await once(tcp.listen({ host: HOST, port: 0 }), "listening");
      const address = tcp.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      const udp = createSocket("udp4");
      try {
        const listening = once(udp, "listening");
        udp.bind(port, HOST);
        await listening;
        return new FakeSocket(word, port, udp, tcp, answer);
      } catch (error) {
        // The UDP port is taken by another process.
        udp.close();
        tcp.close();
        if (attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.destroy();
    await Promise.all([
      new Promise<void>((resolve) => this.#udp.close(() => resolve())),
      new Promise<void>((resolve) => this.#tcp.close(() => resolve())),
    ]);
  }

  #serve(connection: TcpSocket, answer: Answerer): void {
    let pending = Buffer.alloc(0);
    this.#connections.add(connection);
    connection.on("close", () => this.#connections.delete(connection));
    connection.on("error", () => connection.destroy());
    connection.on("data", (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const end = 2 + pending.readUInt16BE(0);
        const message = pending.subarray(2, end);
        pending = pending.subarray(end);
        const reply = unlessMalformed(() => answer(message, MAX_STREAM_OCTETS));
        if (reply === undefined) continue;
        const length = Buffer.alloc(2);
        length.writeUInt16BE(reply.length);
        connection.write(Buffer.concat([length, reply]));
      }
    });
  }
}

const MAX_STREAM_OCTETS = 0xffff;

function udpLimit(octets: Uint8Array): number {
  return Math.max(512, decodeMessage(octets).edns?.udpSize ?? 512);
}

/** Strangers that find the port and send garbage get no answer. */
function unlessMalformed(answer: () => Uint8Array | undefined): Uint8Array | undefined {
  try {
    return answer();
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
}
