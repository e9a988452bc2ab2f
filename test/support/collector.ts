/** A collector of traces: a real HTTP server that keeps what it is sent. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** The collector's answer to a request; 200 and `{}` by default. */
export type CollectorScript = (
  request: Received,
  number: number,
) => { status: number; headers?: Record<string, string>; body?: string };

export class FakeCollector implements AsyncDisposable {
  readonly received: Received[] = [];
  readonly port: number;
  readonly url: string;
  readonly #server: Server;
  #arrived: (() => void) | undefined;

  private constructor(server: Server, script: CollectorScript, scheme: string) {
    this.#server = server;
    this.port = (server.address() as AddressInfo).port;
    this.url = `${scheme}://127.0.0.1:${this.port}`;
    server.on("request", (request, response) => {
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const { method = "", url = "", headers } = request;
        const received = { method, path: url, headers, body: Buffer.concat(parts) };
        const { status, headers: said = {}, body = "{}" } = script(received, this.received.length);
        response.writeHead(status, said).end(body);
        this.received.push(received);
        this.#arrived?.();
      });
    });
  }

  /** @param identity where it speaks TLS: certificate and key, PEM */
  static async start(
    script: CollectorScript = () => ({ status: 200 }),
    identity?: { readonly cert: string; readonly key: string },
  ): Promise<FakeCollector> {
    const server = identity === undefined ? createServer() : createTlsServer(identity);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FakeCollector(server, script, identity === undefined ? "http" : "https");
  }

  /** Resolves when that is true of what has come; rejects when it takes too long. */
  async until(isTrue: (received: readonly Received[]) => boolean): Promise<void> {
    const signal = AbortSignal.timeout(60_000);
    while (!isTrue(this.received)) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  /** All spans that came as JSON of Zipkin or of OpenTelemetry. */
  get spans(): JsonSpan[] {
    return this.received.flatMap(({ body }) => {
      const json: unknown = JSON.parse(body.toString());
      return (Array.isArray(json) ? json : otlpSpans(json)) as JsonSpan[];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** A span as one of the two formats has it. */
export interface JsonSpan {
  readonly traceId: string;
  readonly name: string;
  readonly id?: string;
  readonly parentId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
  readonly kind?: string | number;
  readonly shared?: boolean;
  readonly timestamp?: number;
  readonly duration?: number;
  readonly startTimeUnixNano?: string;
  readonly endTimeUnixNano?: string;
  readonly tags?: Readonly<Record<string, string>>;
  readonly localEndpoint?: { readonly serviceName: string };
  readonly remoteEndpoint?: { readonly ipv4?: string; readonly ipv6?: string; readonly port?: number };
  readonly attributes?: readonly OtlpAttribute[];
  readonly status?: { readonly code: number; readonly message: string };
}

export interface OtlpAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: string };
}

export interface OtlpBody {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly OtlpAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly JsonSpan[] }[];
  }[];
}

function otlpSpans(json: unknown): readonly JsonSpan[] {
  return (json as OtlpBody).resourceSpans.flatMap(({ scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) => spans),
  );
}

/** Values of attributes by their keys. */
export function attributesOf(span: {
  readonly attributes?: readonly OtlpAttribute[];
}): Record<string, string> {
  return Object.fromEntries(
    (span.attributes ?? []).map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? ""]),
  );
}

/** Reads MessagePack, as much of it as spans need; whole numbers become bigints. */
export function readMessagePack(octets: Buffer): unknown {
  const reader = new MessagePackReader(octets);
  return reader.value();
}

class MessagePackReader {
  readonly #octets: Buffer;
  #at = 0;

  constructor(octets: Buffer) {
    this.#octets = octets;
  }

  value(): unknown {
    const octets = this.#octets;
    const at = this.#at;
    const head = octets.readUInt8(at);
    if (head >= 0xa0 && head < 0xc0) return this.#text(1, head & 0x1f);
    if (head >= 0x80 && head < 0x90) return this.#map(1, head & 0x0f);
    switch (head) {
      case 0xdb:
        return this.#text(5, octets.readUInt32BE(at + 1));
      case 0xde:
        return this.#map(3, octets.readUInt16BE(at + 1));
      case 0xdd:
        this.#at += 5;
        return Array.from({ length: octets.readUInt32BE(at + 1) }, () => this.value());
      case 0xcf:
        this.#at += 9;
        return octets.readBigUInt64BE(at + 1);
      case 0xd3:
        this.#at += 9;
        return octets.readBigInt64BE(at + 1);
      case 0xcb:
        this.#at += 9;
        return octets.readDoubleBE(at + 1);
      default:
        throw new Error(`unexpected octet ${head} at ${at}`);
    }
  }

  #text(head: number, length: number): string {
    this.#at += head + length;
    return this.#octets.toString("utf8", this.#at - length, this.#at);
  }

  #map(head: number, length: number): Record<string, unknown> {
    this.#at += head;
    const map: Record<string, unknown> = {};
    for (let entry = 0; entry < length; entry++) {
      const key = this.value() as string;
      map[key] = this.value();
    }
    return map;
  }
}
