/** DNS over QUIC (RFC 9250): one connection, one stream per query. */
import { writeU16 } from "../../dns/octets.ts";
import type { UpstreamAddress } from "../config/address.ts";
import { QueryPadder } from "../encrypted/query-padding.ts";
import { isTransfer, type UpstreamRequest } from "../exchange/exchange.ts";
import { ExchangeError } from "../exchange/exchange-error.ts";
import {
  type MultiplexedConnection,
  MultiplexedExchange,
  type MultiplexedOptions,
  type MultiplexedOwner,
  type MultiplexedQuery,
  type MultiplexedQueryOwner,
} from "../exchange/multiplexed-exchange.ts";
import type { CallThread, CallUser } from "./call-thread.ts";

export interface QuicExchangeOptions extends MultiplexedOptions {
  readonly thread: CallThread;
  /** The name in the server's certificate; its address if absent. */
  readonly serverName: string | undefined;
}

type Owner = MultiplexedOwner<QuicUpstreamConnection, QuicQuery>;

export class QuicExchange extends MultiplexedExchange<QuicUpstreamConnection, QuicQuery> {
  readonly protocol = "quic";
  readonly #options: QuicExchangeOptions;
  readonly #padder = new QueryPadder();
  #isClosed = false;

  constructor(options: QuicExchangeOptions) {
    super(options);
    this.#options = options;
    options.thread.hold();
  }

  override send(request: UpstreamRequest, readTimeout: number, connectTimeout: number): void {
    if (!isTransfer(request)) super.send(request, readTimeout, connectTimeout);
    // The end of an answer of several messages only shows in their content.
    else queueMicrotask(() => request.failed(this.#unsupported()));
  }

  override close(): void {
    super.close();
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#options.thread.release();
  }

  #unsupported(): ExchangeError {
    const message =
      "proxy: unsupported request: zone transfers over DoQ require multi-message response support";
    return new ExchangeError("unsupported", this.protocol, this.#options.remote.text, message);
  }

  protected dial(owner: Owner, now: number): QuicUpstreamConnection {
    return new QuicUpstreamConnection(this.#options, owner, now);
  }

  protected query(
    request: UpstreamRequest,
    connection: QuicUpstreamConnection,
    owner: MultiplexedQueryOwner,
  ): QuicQuery {
    request.id = 0;
    return new QuicQuery(request, connection, owner);
  }

  protected begin(query: QuicQuery): void {
    const { request, connection } = query;
    const message = this.#padder.pad(request.bytes, request.length, request.questionEnd).slice();
    writeU16(message, 0, 0);
    connection.ask(query, message);
  }

  protected get keepsId(): boolean {
    return false;
  }

  protected get late(): string {
    return "i/o timeout";
  }

  protected describe(reason: string): string {
    return reason;
  }
}

class QuicQuery implements MultiplexedQuery<QuicUpstreamConnection> {
  readonly request: UpstreamRequest;
  readonly connection: QuicUpstreamConnection;
  readonly owner: MultiplexedQueryOwner;
  readonly heardBefore: number;
  number = 0;

  constructor(request: UpstreamRequest, connection: QuicUpstreamConnection, owner: MultiplexedQueryOwner) {
    this.request = request;
    this.connection = connection;
    this.owner = owner;
    this.heardBefore = connection.heard;
  }

  cancel(): void {
    this.connection.cancel(this);
  }
}

class QuicUpstreamConnection implements MultiplexedConnection<QuicQuery>, CallUser {
  readonly openedAt: number;
  idleSince: number;
  isOpen = false;
  isRetired = false;
  heard = 0;
  readonly #owner: Owner;
  readonly #thread: CallThread;
  readonly #remote: UpstreamAddress;
  readonly #number: number;
  readonly #queries = new Map<number, QuicQuery>();
  #lastQuery = 0;
  #isLost = false;

  constructor(options: QuicExchangeOptions, owner: Owner, now: number) {
    const { thread, remote, serverName, sourceAddress } = options;
    this.openedAt = now;
    this.idleSince = now;
    this.#owner = owner;
    this.#thread = thread;
    this.#remote = remote;
    const { host, port } = remote;
    const certifiedName = serverName ?? host.replace(/%.*/, "");
    this.#number = thread.dial({ address: host, port, sourceAddress, serverName, certifiedName }, this);
  }

  get isUsable(): boolean {
    return !this.isRetired && !this.#isLost;
  }

  get inFlight(): number {
    return this.#queries.size;
  }

  get queries(): Iterable<QuicQuery> {
    return this.#queries.values();
  }

  ask(query: QuicQuery, message: Uint8Array): void {
    this.#lastQuery = (this.#lastQuery + 1) % 2 ** 32;
    query.number = this.#lastQuery;
    this.#queries.set(query.number, query);
    this.#thread.ask(this.#number, query.number, message);
  }

  cancel({ number }: QuicQuery): void {
    if (this.#queries.delete(number) && !this.#isLost) this.#thread.cancel(this.#number, number);
  }

  ended({ number }: QuicQuery, now: number): void {
    this.#queries.delete(number);
    this.idleSince = now;
  }

  close(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#thread.hangUp(this.#number);
  }

  connected(): void {
    this.isOpen = true;
    this.#owner.connected(this);
  }

  answered(number: number, message: Uint8Array): void {
    this.heard++;
    this.#queries.get(number)?.owner.answered(message.slice());
  }

  failed(number: number, reason: string): void {
    this.heard++;
    this.#queries.get(number)?.owner.failed(reason);
  }

  lost(reason: string): void {
    if (this.#isLost) return;
    this.#isLost = true;
    const queries = [...this.#queries.values()];
    const said =
      this.isOpen || /^(?:tls|QUIC|the thread)/.test(reason)
        ? reason
        : `dial udp ${this.#remote.text}: ${reason}`;
    this.#owner.lost(this, said, queries);
  }
}
