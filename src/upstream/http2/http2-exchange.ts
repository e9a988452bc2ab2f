/** DNS messages over HTTP/2. */
import type { UpstreamRequest } from "../exchange/exchange.ts";
import {
  MultiplexedExchange,
  type MultiplexedOptions,
  type MultiplexedOwner,
  type MultiplexedQueryOwner,
} from "../exchange/multiplexed-exchange.ts";
import type { Http2Dialect } from "./dialect.ts";
import { Http2Connection } from "./http2-connection.ts";
import { Http2Query } from "./http2-query.ts";

export interface Http2ExchangeOptions extends MultiplexedOptions {
  readonly dialect: Http2Dialect;
}

export class Http2Exchange extends MultiplexedExchange<Http2Connection<Http2Query>, Http2Query> {
  readonly protocol: string;
  readonly #options: Http2ExchangeOptions;
  readonly #dialect: Http2Dialect;

  constructor(options: Http2ExchangeOptions) {
    super(options);
    this.#options = options;
    this.#dialect = options.dialect;
    this.protocol = options.dialect.protocol;
  }

  protected dial(
    owner: MultiplexedOwner<Http2Connection<Http2Query>, Http2Query>,
    now: number,
  ): Http2Connection<Http2Query> {
    const { remote, sourceAddress, wheel } = this.#options;
    return new Http2Connection(owner, remote, this.#dialect.dial(remote, sourceAddress), now, { wheel });
  }

  protected query(
    request: UpstreamRequest,
    connection: Http2Connection<Http2Query>,
    owner: MultiplexedQueryOwner,
  ): Http2Query {
    return new Http2Query(request, connection, this.#dialect.reader(request), owner);
  }

  protected begin(query: Http2Query): void {
    const { request, connection } = query;
    const body = this.#dialect.body(request);
    query.begin(connection.open(query, this.#dialect.headers(request), body === undefined), body);
  }

  protected get keepsId(): boolean {
    return this.#dialect.keepsId;
  }

  protected get late(): string {
    return this.#dialect.late;
  }

  protected describe(reason: string): string {
    return this.#dialect.describe(reason);
  }
}
