/** One request and its answer, with the requested faults in between. */
import type { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { Fault, RequestFacts } from "./faults.ts";

export type AnyRequest = IncomingMessage | Http2ServerRequest;
export type AnyResponse = ServerResponse | Http2ServerResponse;

export class Exchange {
  readonly facts: RequestFacts;
  readonly request: AnyRequest;
  readonly socket: Socket;
  readonly #response: AnyResponse;
  readonly #fault: Fault | undefined;
  #queue: Promise<void> = Promise.resolve();
  #written = 0;
  #frozen: boolean;
  #closed = false;
  readonly #closeCallbacks: (() => void)[] = [];

  constructor(
    request: AnyRequest,
    response: AnyResponse,
    facts: RequestFacts,
    fault: Fault | undefined,
    frozen: boolean,
  ) {
    this.request = request;
    this.facts = facts;
    this.socket = socketOf(request);
    this.#response = response;
    this.#fault = fault;
    this.#frozen = frozen;
    const closed = () => {
      this.#closed = true;
      for (const callback of this.#closeCallbacks) callback();
    };
    // Two kinds of response that declare their methods in ways that cannot be called as one.
    const events: EventEmitter = response;
    events.on("close", closed).on("error", () => undefined);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  onClose(callback: () => void): void {
    if (this.#closed) callback();
    else this.#closeCallbacks.push(callback);
  }

  /** Drops everything from now on, in both directions, without an error. */
  freeze(): void {
    this.#frozen = true;
  }

  head(status: number, headers: Readonly<Record<string, string>>): void {
    if (this.#frozen || this.#closed || this.#fault?.kind === "hang") return;
    const response = this.#response;
    if ("stream" in response) {
      response.writeHead(status, headers);
      return;
    }
    response.writeHead(status, headers);
    // So that whoever waits for a watch knows that it has begun.
    response.flushHeaders();
  }

  write(octets: Buffer): void {
    if (this.#fault?.kind !== "slow") {
      this.#write(octets);
      return;
    }
    const { delayMs } = this.#fault;
    this.#queue = this.#queue.then(async () => {
      await new Promise((resolve) => setTimeout(resolve, delayMs));
      this.#write(octets);
    });
  }

  end(): void {
    this.#queue = this.#queue.then(() => {
      if (this.#frozen || this.#closed || this.#fault?.kind === "hang") return;
      this.#response.end();
    });
  }

  /** Ends the connection as a crash does. */
  reset(): void {
    this.#closed = true;
    this.socket.destroy();
  }

  async body(): Promise<Buffer> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.request) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks);
  }

  #write(octets: Buffer): void {
    if (this.#frozen || this.#closed || this.#fault?.kind === "hang") return;
    if (this.#fault?.kind !== "cut" && this.#fault?.kind !== "end") {
      send(this.#response, octets);
      return;
    }
    const left = this.#fault.afterOctets - this.#written;
    this.#written += octets.length;
    if (octets.length <= left) {
      send(this.#response, octets);
      return;
    }
    const { kind } = this.#fault;
    this.#closed = true;
    // The octets before the cut are to arrive.
    const finish = () => (kind === "cut" ? this.socket.destroy() : this.#response.end());
    if (left <= 0) finish();
    else send(this.#response, octets.subarray(0, left), () => setImmediate(finish));
  }
}

function send(response: AnyResponse, octets: Buffer, done?: () => void): void {
  // As with their events.
  if ("stream" in response) response.stream.write(octets, done);
  else response.write(octets, done);
}

/** The connection under a request, of HTTP/2 the one that all streams share. */
export function socketOf(request: AnyRequest): Socket {
  const session = "stream" in request ? request.stream.session : undefined;
  return session?.socket ?? request.socket;
}
