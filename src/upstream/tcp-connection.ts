import { connect, type Socket } from "node:net";
import { writeU16 } from "../dns/octets.ts";
import type { UpstreamAddress } from "./address.ts";
import type { RequestCarrier, UpstreamRequest } from "./exchange.ts";
import { FrameReader } from "./frame-reader.ts";

/** Who keeps the connections. */
export interface ConnectionOwner {
  connected(connection: TcpConnection): void;
  received(connection: TcpConnection, message: Uint8Array): void;
  timedOut(connection: TcpConnection, request: UpstreamRequest): void;
  letGo(connection: TcpConnection, request: UpstreamRequest): void;
  /** Called once, unless the owner itself closed the connection. No error: the peer ended it in good order. */
  lost(connection: TcpConnection, error: Error | undefined): void;
}

/** One connection to an upstream with what the pool knows of it. */
export class TcpConnection implements RequestCarrier {
  readonly #owner: ConnectionOwner;
  readonly #socket: Socket;
  readonly openedAt: number;
  state: "connecting" | "open" | "closed" = "connecting";
  inFlight = 0;
  /** Messages that came back over it. */
  answers = 0;
  /** `Clock.now()` when the last query was answered. */
  idleSince: number;
  /** Gets no further queries. */
  retired = false;
  /** Octets wait that the peer does not take: further queries are better off elsewhere. */
  blocked = false;
  #local = "";

  constructor(
    owner: ConnectionOwner,
    remote: UpstreamAddress,
    sourceAddress: string | undefined,
    now: number,
  ) {
    this.#owner = owner;
    this.openedAt = now;
    this.idleSince = now;
    const reader = new FrameReader((message) => {
      if (this.state === "open") owner.received(this, message);
    });
    this.#socket = connect({
      host: remote.host,
      port: remote.port,
      noDelay: true,
      ...(sourceAddress !== undefined && { localAddress: sourceAddress }),
    });
    this.#socket
      .on("connect", () => this.#connected())
      .on("data", (chunk) => reader.push(chunk))
      .on("drain", () => {
        this.blocked = false;
      })
      .on("end", () => this.#lost(undefined))
      .on("error", (error) => this.#lost(error))
      .on("close", () => this.#lost(undefined));
  }

  /** Sends the first `length` octets, `id` in place of the first two. The octets may be reused at once. */
  write(bytes: Uint8Array, length: number, id: number): void {
    const frame = Buffer.allocUnsafe(length + 2);
    frame.set(length === bytes.length ? bytes : bytes.subarray(0, length), 2);
    writeU16(frame, 0, length);
    writeU16(frame, 2, id);
    if (!this.#socket.write(frame)) this.blocked = true;
  }

  /** Address and port on this side, for messages. */
  get localText(): string {
    return this.#local;
  }

  close(): void {
    if (this.state === "closed") return;
    this.state = "closed";
    this.#socket.destroy();
  }

  timedOut(request: UpstreamRequest): void {
    this.#owner.timedOut(this, request);
  }

  letGo(request: UpstreamRequest): void {
    this.#owner.letGo(this, request);
  }

  #connected(): void {
    if (this.state !== "connecting") return;
    this.state = "open";
    const { localAddress = "", localPort = 0 } = this.#socket;
    this.#local = localAddress.includes(":")
      ? `[${localAddress}]:${localPort}`
      : `${localAddress}:${localPort}`;
    this.#owner.connected(this);
  }

  #lost(error: Error | undefined): void {
    if (this.state === "closed") return;
    this.#owner.lost(this, error);
    this.close();
  }
}
