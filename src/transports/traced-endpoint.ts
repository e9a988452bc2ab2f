/** Clients whose queries belong to a trace. */
import type { Endpoint, TraceHeaders } from "../plugin/message/endpoint.ts";
import { TRACE_HEADERS } from "../plugin/message/trace-context.ts";

/** The client with the trace headers of its request; the same endpoint if it has none. */
export function withTraceHeaders(client: Endpoint, headers: TraceHeaders): Endpoint {
  for (const name of TRACE_HEADERS)
    if (headers[name] !== undefined) return new TracedEndpoint(client, headers);
  return client;
}

class TracedEndpoint implements Endpoint {
  readonly traceHeaders: TraceHeaders;
  readonly #client: Endpoint;

  constructor(client: Endpoint, headers: TraceHeaders) {
    this.#client = client.snapshot();
    this.traceHeaders = headers;
  }

  get proxyExtensions(): Uint8Array | undefined {
    return this.#client.proxyExtensions;
  }

  get address(): string {
    return this.#client.address;
  }

  get port(): number {
    return this.#client.port;
  }

  get family(): 4 | 6 {
    return this.#client.family;
  }

  get octets(): Uint8Array {
    return this.#client.octets;
  }

  snapshot(): Endpoint {
    return this;
  }
}
