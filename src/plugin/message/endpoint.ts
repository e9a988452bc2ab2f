/** The two ends of a conversation. */
/** The transport of a query: it decides framing and size limits, and is the `{proto}` of logs. */
export type TransportName = "udp" | "tcp" | "tls" | "https" | "https3" | "quic" | "grpc";

/** One end of the conversation. Transports may reuse the object, so `Query.detach` takes a copy. */
export interface Endpoint {
  /** IP address as text, without zone index. */
  readonly address: string;
  readonly port: number;
  readonly family: 4 | 6;
  /** The address as octets, 4 or 16. */
  readonly octets: Uint8Array;
  /**
   * Writes the address as words of the machine from the first word on, one for IPv4 and four for IPv6, and creates no object. Present
   * where {@link octets} creates an array each time. @returns the family
   */
  copyAddress?(words: Int32Array): 4 | 6;
  /** The client's trace context, on transports that carry it (`traceparent` and `b3` of HTTP). */
  readonly traceHeaders?: TraceHeaders | undefined;
  /** The type-length-value extensions of the PROXY protocol, version 2, unparsed, if they are wanted. */
  readonly proxyExtensions?: Uint8Array | undefined;
  /** An endpoint that does not change any more. */
  snapshot(): Endpoint;
}

/** Headers of a request, names in lower case. */
export type TraceHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** An endpoint that does not change. */
export class FixedEndpoint implements Endpoint {
  readonly address: string;
  readonly port: number;
  readonly octets: Uint8Array;

  constructor(address: string, port: number, octets: Uint8Array) {
    this.address = address;
    this.port = port;
    this.octets = octets;
  }

  get family(): 4 | 6 {
    return this.octets.length === 4 ? 4 : 6;
  }

  snapshot(): Endpoint {
    return this;
  }
}
