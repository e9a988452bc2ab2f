import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { TimeoutHandle, TimeoutTarget, TimeoutWheel } from "../../lib/time/timeout-wheel.ts";
import type { UpstreamAddress } from "../config/address.ts";
import { describeTlsError } from "../encrypted/tls-words.ts";
import { describeSystemError } from "../exchange/exchange-error.ts";
import type { MultiplexedOwner } from "../exchange/multiplexed-exchange.ts";

/** Milliseconds for TCP, TLS and the first frames. */
const LONGEST_HANDSHAKE = 10_000;

const NO_HTTP2 = "the server does not speak HTTP/2";

/** One HTTP/2 connection to an upstream, with the exchange's state about it. */
export class Http2Connection<Q extends ConnectionQuery> implements TimeoutTarget {
  readonly #owner: MultiplexedOwner<Http2Connection<Q>, Q>;
  readonly #remote: UpstreamAddress;
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
    remote: UpstreamAddress,
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

  begin(query: Q, headers: Readonly<Record<string, string>>, body: Uint8Array | undefined): void {
    this.#queries.add(query);
    query.begin(this.#session.request(headers, { endStream: body === undefined }), body);
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

  /** Called when the handshake takes too long. */
  expired(): void {
    this.#fault ??= new Error("i/o timeout");
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

/** A query as its connection sees it. */
export interface ConnectionQuery {
  begin(stream: ClientHttp2Stream, body: Uint8Array | undefined): void;
}
