import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { connect as connectTcp, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { TimeoutHandle, TimeoutTarget, TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { PeerAddress } from "../config/address.ts";
import type { TlsClient } from "../encrypted/tls-client.ts";
import { describeTlsError } from "../encrypted/tls-words.ts";
import { describeSystemError } from "../exchange/exchange-error.ts";
import type { MultiplexedOwner } from "../exchange/multiplexed-exchange.ts";

/** Milliseconds for TCP, TLS and the first frames. */
const LONGEST_HANDSHAKE = 10_000;

const NO_HTTP2 = "the server does not speak HTTP/2";

/** One HTTP/2 connection to another server, with its owner's state about it. `Q` is a call on a stream of its own. */
export class Http2Connection<Q> implements TimeoutTarget {
  readonly #owner: MultiplexedOwner<Http2Connection<Q>, Q>;
  readonly #remote: PeerAddress;
  readonly #session: ClientHttp2Session;
  readonly #queries = new Set<Q>();
  readonly #wheel: TimeoutWheel;
  readonly openedAt: number;
  /** `Clock.now()` when the last query ended. */
  idleSince: number;
  isOpen = false;
  /** Set when the connection has ended, so that its queries are notified together. */
  isLost = false;
  /** Gets no further queries. */
  isRetired = false;
  /** Grows with everything received from the server. */
  heard = 0;
  #handshake: TimeoutHandle | undefined;
  #fault: Error | undefined;
  /** Whether its settings have arrived. */
  #speaksHttp2 = false;

  constructor(
    owner: MultiplexedOwner<Http2Connection<Q>, Q>,
    remote: PeerAddress,
    socket: Socket,
    now: number,
    { wheel }: { readonly wheel: TimeoutWheel },
  ) {
    this.#owner = owner;
    this.#remote = remote;
    this.#wheel = wheel;
    this.openedAt = now;
    this.idleSince = now;
    this.#handshake = wheel.schedule(LONGEST_HANDSHAKE, this);
    socket.on("error", (error) => {
      this.#fault ??= error;
    });
    socket.once("secureConnect", () => {
      if (socket instanceof TLSSocket && socket.alpnProtocol === "h2") return;
      this.#fault ??= new Error(NO_HTTP2);
      this.#lost();
    });
    const scheme = socket instanceof TLSSocket ? "https" : "http";
    // The session never resolves this host: it gets its socket.
    this.#session = connect(`${scheme}://upstream`, {
      createConnection: () => socket,
      settings: { enablePush: false },
      maxHeaderListPairs: 64,
    });
    this.#session
      .on("connect", () => this.#connected())
      .on("remoteSettings", () => {
        this.#speaksHttp2 = true;
      })
      .on("goaway", () => {
        this.isRetired = true;
      })
      .on("error", (error) => {
        this.#fault ??= error;
        this.#lost();
      })
      .on("close", () => this.#lost());
  }

  /** Whether it may carry another query. */
  get isUsable(): boolean {
    return !this.isRetired && !this.isLost && !this.#session.closed && !this.#session.destroyed;
  }

  get isEnding(): boolean {
    return this.#session.destroyed;
  }

  get inFlight(): number {
    return this.#queries.size;
  }

  get queries(): Iterable<Q> {
    return this.#queries;
  }

  /** @param endStream whether the headers are the whole request */
  open(query: Q, headers: Readonly<Record<string, string>>, endStream: boolean): ClientHttp2Stream {
    this.#queries.add(query);
    return this.#session.request(headers, { endStream });
  }

  ended(query: Q, now: number): void {
    this.#queries.delete(query);
    this.idleSince = now;
  }

  close(): void {
    if (this.isLost) return;
    this.isLost = true;
    this.#endHandshake();
    this.#session.destroy();
  }

  /** Calls back when the server has answered a ping. */
  ping(answered: () => void): void {
    this.#session.ping(answered);
  }

  /** Called when the handshake takes too long. */
  expired(): void {
    this.fail("i/o timeout");
  }

  /** Ends the connection, and reports it as lost. */
  fail(reason: string): void {
    this.#fault ??= new Error(reason);
    this.#lost();
  }

  #connected(): void {
    this.#endHandshake();
    if (this.isLost) return;
    this.isOpen = true;
    this.#owner.connected(this);
  }

  #lost(): void {
    if (this.isLost) return;
    const queries = [...this.#queries];
    this.isLost = true;
    this.#endHandshake();
    this.#session.destroy();
    this.#owner.lost(this, this.#reason(), queries);
  }

  #endHandshake(): void {
    if (this.#handshake !== undefined) this.#wheel.cancel(this.#handshake);
    this.#handshake = undefined;
  }

  #reason(): string {
    const fault = this.#fault;
    if (fault === undefined) return "EOF";
    const secure = describeTlsError(fault);
    if (secure !== undefined) return secure;
    const { text } = this.#remote;
    const code = "code" in fault ? fault.code : undefined;
    if (fault.message === NO_HTTP2) return NO_HTTP2;
    if (code === "ERR_HTTP2_ERROR")
      return this.#speaksHttp2 ? `the server broke the rules of HTTP/2: ${fault.message}` : NO_HTTP2;
    const reason = describeSystemError(fault);
    if (this.isOpen) return reason;
    const network = this.#remote.path === undefined ? "tcp" : "unix";
    return code === undefined
      ? `dial ${network} ${text}: ${reason}`
      : `dial ${network} ${text}: connect: ${reason}`;
  }
}

/** @param client agrees on `h2` by ALPN; `undefined` for HTTP/2 in the clear */
export function dialHttp2(
  client: TlsClient | undefined,
  remote: PeerAddress,
  sourceAddress: string | undefined,
): Socket {
  if (client !== undefined) return client.connect(remote, sourceAddress);
  if (remote.path !== undefined) return connectTcp(remote.path);
  return connectTcp({
    host: remote.host,
    port: remote.port,
    noDelay: true,
    ...(sourceAddress !== undefined && { localAddress: sourceAddress }),
  });
}
