import { createSocket, type Socket } from "node:dgram";
import { encodeMessage, Flag, makeQuery, type Name } from "../../dns/index.ts";
import { readU16 } from "../../dns/octets.ts";
import type { Random } from "../../plugin/index.ts";

const HEADER_OCTETS = 12;

export interface LoopProbeOptions {
  readonly host: string;
  readonly port: number;
  readonly question: { readonly name: Name; readonly type: number };
  readonly random: Random;
  /** Called once, for the first answer to any attempt. */
  readonly onAnswer: () => void;
}

/** One query, sent over UDP repeatedly. Errors are ignored: the next attempt may succeed. */
export class LoopProbe {
  readonly #options: LoopProbeOptions;
  readonly #message: Uint8Array;
  readonly #id: number;
  #socket: Socket | undefined;

  constructor(options: LoopProbeOptions) {
    this.#options = options;
    this.#id = options.random.unpredictable() & 0xffff;
    this.#message = encodeMessage(makeQuery(options.question, { id: this.#id }));
  }

  send(): void {
    const { host, port } = this.#options;
    this.#socket ??= this.#open();
    this.#socket.send(this.#message, port, host, () => undefined);
  }

  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }

  #open(): Socket {
    const socket = createSocket(this.#options.host.includes(":") ? "udp6" : "udp4");
    socket.unref();
    socket.on("error", () => this.close());
    socket.on("message", (message) => {
      if (message.length < HEADER_OCTETS || readU16(message, 0) !== this.#id) return;
      if ((readU16(message, 2) & Flag.QR) === 0) return;
      this.#options.onAnswer();
    });
    return socket;
  }
}
