import type { IncomingMessage, ServerResponse } from "node:http";
import type { ExpositionFormat } from "../../lib/metrics/metrics-exposition.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import type { HttpHandler, Logger, MetricsRegistry } from "../../plugin/index.ts";

/** Bound for the number of different faults that are logged. */
const MAX_REPORTED = 100;

/** `/metrics`: everything in the registry, in the format that the client prefers. */
export class MetricsEndpoint {
  readonly #metrics: MetricsRegistry;
  readonly #log: Logger;
  readonly #reported = new Set<string>();

  constructor(metrics: MetricsRegistry, log: Logger) {
    this.#metrics = metrics;
    this.#log = log;
  }

  readonly handle: HttpHandler = (request, response) => void this.#answer(request, response);

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { contentType, body, errors } = await this.#metrics.expose(
        preferredFormat(request.headers.accept),
      );
      for (const error of errors) this.#report(error);
      const headers = { "content-type": contentType, vary: "Accept-Encoding" };
      if (!acceptsGzip(request.headers["accept-encoding"])) {
        response.writeHead(200, { ...headers, "content-length": Buffer.byteLength(body) });
        response.end(body);
        return;
      }
      const octets = await gzipped(body);
      response.writeHead(200, {
        ...headers,
        "content-encoding": "gzip",
        "content-length": octets.byteLength,
      });
      response.end(octets);
    } catch (error) {
      this.#report(error);
      if (!response.headersSent) response.writeHead(500);
      response.end();
    }
  }

  /** Logs each fault once: it would recur with every scrape. */
  #report(error: unknown): void {
    const reason = messageOf(error);
    if (this.#reported.has(reason) || this.#reported.size >= MAX_REPORTED) return;
    this.#reported.add(reason);
    this.#log.error(`metrics are incomplete: ${reason}`);
  }
}

/** Compresses off the main thread, because scrapes are large; zlib is loaded on first use. */
async function gzipped(body: string): Promise<Uint8Array> {
  const { gzip } = await import("node:zlib");
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>();
  gzip(body, (error, octets) => (error === null ? resolve(octets) : reject(error)));
  return promise;
}

/** By the header `Accept-Encoding` (RFC 9110 section 12.5.3). */
export function acceptsGzip(header: string | undefined): boolean {
  return (header ?? "").split(",").some((range) => {
    const [coding = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return coding === "gzip" && qualityOf(parameters) > 0;
  });
}

/** Selects by the header `Accept` (RFC 9110 section 12.5.1); the text format if both are equally acceptable. */
export function preferredFormat(accept: string | undefined): ExpositionFormat {
  let text = 0;
  let openMetrics = 0;
  for (const range of (accept ?? "*/*").toLowerCase().split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
    const quality = qualityOf(parameters);
    const version = valueIn(parameters, "version");
    if (type === "application/openmetrics-text" && (version === undefined || version === "1.0.0"))
      openMetrics = Math.max(openMetrics, quality);
    else if (["text/plain", "text/*", "*/*"].includes(type)) text = Math.max(text, quality);
  }
  return openMetrics > text ? "openmetrics" : "prometheus";
}

function qualityOf(parameters: readonly string[]): number {
  const quality = Number(valueIn(parameters, "q") ?? 1);
  return quality >= 0 && quality <= 1 ? quality : 0;
}

function valueIn(parameters: readonly string[], name: string): string | undefined {
  return parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1);
}
