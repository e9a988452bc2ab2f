/**
 * A QUIC client that sends what a test wants, over the same binding as the server, for cases that kdig cannot
 * produce.
 */

import { type DialledConnection, QuicDialler } from "../../src/quic/openssl/client.ts";
import { ClientContext } from "../../src/quic/openssl/client-context.ts";
import { loadQuicLibrary } from "../../src/quic/openssl/library.ts";
import type { QuicClosed, QuicStream } from "../../src/quic/quic.ts";
import { type LinuxSockets, linuxSockets } from "../../src/runtime/linux/linux-sockets.ts";

/** The data of a stream until its end; `undefined` if it was reset. */
type Heard = Buffer | undefined;

export class QuicCaller {
  readonly #dialler: QuicDialler;
  readonly #context: ClientContext;

  private constructor(dialler: QuicDialler, context: ClientContext) {
    this.#dialler = dialler;
    this.#context = context;
  }

  /** @param authorities PEM */
  static async open(authorities: string): Promise<QuicCaller> {
    const library = await loadQuicLibrary();
    const sockets = await linuxSockets();
    if (sockets instanceof Error) throw sockets;
    return new QuicCaller(
      new QuicDialler(library, sockets satisfies LinuxSockets),
      new ClientContext(library, { authorities }),
    );
  }

  /** Ends all connections, as a machine does that loses its power. */
  close(): void {
    this.#dialler.close();
  }

  /** Begins a connection, whether or not the other side wants it. */
  dial(port: number, protocol: string, certifiedName?: string): QuicCall {
    return new QuicCall((listeners) =>
      this.#dialler.dial(
        { peer: { address: "127.0.0.1", port }, protocol, context: this.#context, certifiedName },
        () => listeners,
      ),
    );
  }
}

export class QuicCall {
  readonly connection: DialledConnection;
  /** How it ended. */
  readonly closed: Promise<QuicClosed>;
  /** The data of the server's own streams. */
  readonly heard: Buffer[] = [];
  readonly #connected: Promise<void>;

  constructor(dial: (user: Listeners) => DialledConnection) {
    const connected = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<QuicClosed>();
    this.#connected = connected.promise;
    this.#connected.catch(() => undefined);
    this.closed = closed.promise;
    this.connection = dial({
      connected: () => connected.resolve(),
      accepted: () => ({
        received: (octets) => void this.heard.push(Buffer.from(octets)),
        lost: () => undefined,
      }),
      closed(reason) {
        closed.resolve(reason);
        connected.reject(new Error(`closed by ${reason.by}: ${reason.text}`));
      },
    });
  }

  async connected(): Promise<this> {
    await this.#connected;
    return this;
  }

  /** Says something on a new stream, and waits for the end of what comes back. */
  ask(octets: Uint8Array): Promise<Heard> {
    return this.open(octets, true).heard;
  }

  /** @throws Error where the server allows no further stream */
  open(
    octets: Uint8Array,
    isLast: boolean,
    unidirectional = false,
  ): { stream: QuicStream; heard: Promise<Heard> } {
    const { promise, resolve } = Promise.withResolvers<Heard>();
    const parts: Buffer[] = [];
    const stream = this.connection.openStream(unidirectional, {
      received(part, isEnd) {
        parts.push(Buffer.from(part));
        if (isEnd) resolve(Buffer.concat(parts));
      },
      lost: () => resolve(undefined),
    });
    if (stream === undefined) throw new Error("no further stream");
    stream.write(octets, isLast);
    void this.closed.then(() => resolve(undefined));
    return { stream, heard: promise };
  }
}

type Listeners = ReturnType<Parameters<QuicDialler["dial"]>[1]>;
