/** Stands in front of a small server, over TLS, and answers in its place as networks, proxies and servers in trouble do. */
import { type IncomingMessage, request as plainRequest, type ServerResponse } from "node:http";
import { createServer, type Server, request as securedRequest } from "node:https";
import type { AddressInfo } from "node:net";
import { CertificateAuthority } from "./certificates.ts";

export type Fault = keyof typeof FAULTS;

/** The effect of each fault on a request, or on its answer. */
const FAULTS = {
  "no answer": () => undefined,
  "a connection that breaks": (response: ServerResponse) => void response.destroy(),
  "half an answer": (response: ServerResponse, body: Buffer) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length });
    response.write(body.subarray(0, body.length / 2), () => response.destroy());
  },
  garbage: (response: ServerResponse) => void response.end("\0{garbage<"),
  "a page to sign in": (response: ServerResponse) =>
    void response.writeHead(200, { "content-type": "text/html" }).end("<html>Who are you?</html>"),
  "another answer": (response: ServerResponse) =>
    void response.writeHead(200, { "content-type": "application/json" }).end('{"hello": "there"}'),
  "too many requests": (response: ServerResponse) =>
    void response.writeHead(429, { "retry-after": "1" }).end("slow down"),
  "a server that is away": (response: ServerResponse) => void response.writeHead(503).end("later"),
} as const;

export const faults: readonly Fault[] = Object.keys(FAULTS).map((name) => name as Fault);

export interface FrontOptions {
  /** Where requests go. */
  readonly target: string;
  /** Paths that faults are for. */
  readonly paths: RegExp;
}

export class FaultyFront {
  fault: Fault | undefined;
  /** Requests that pass before the fault. */
  passing = 0;
  /** PEM: who vouches for this server. */
  readonly authority: string;
  readonly #authority = new CertificateAuthority("front authority");
  readonly #options: FrontOptions;
  readonly #server: Server;

  private constructor(options: FrontOptions) {
    this.#options = options;
    this.authority = this.#authority.certificate;
    this.#server = createServer((request, response) => void this.#answer(request, response));
    this.present("its own");
  }

  static async start(options: FrontOptions): Promise<FaultyFront> {
    const front = new FaultyFront(options);
    await new Promise<void>((resolve) => front.#server.listen(0, "127.0.0.1", resolve));
    return front;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Whose certificate new connections get; those that are open end. */
  present(whose: "its own" | "an unknown authority's" | "another host's"): void {
    const authority =
      whose === "an unknown authority's" ? new CertificateAuthority("nobody") : this.#authority;
    const hosts = whose === "another host's" ? ["elsewhere.test"] : ["127.0.0.1"];
    const { certificate, key } = authority.issue({ commonName: "front.test", hosts });
    this.#server.setSecureContext({ cert: certificate, key });
    this.#server.closeAllConnections();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const isMeant = this.fault !== undefined && this.#options.paths.test(request.url ?? "");
    const fault = isMeant && this.passing-- <= 0 ? this.fault : undefined;
    const { status, headers, body } = await this.#forward(request);
    if (fault !== undefined) FAULTS[fault](response, body);
    else response.writeHead(status, headers).end(body);
  }

  async #forward(request: IncomingMessage) {
    const url = new URL(request.url ?? "/", this.#options.target);
    const ask = url.protocol === "https:" ? securedRequest : plainRequest;
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const forwarded = ask(
      url,
      { method: request.method, headers: request.headers, rejectUnauthorized: false },
      resolve,
    );
    forwarded.on("error", reject);
    request.pipe(forwarded);
    const answer = await promise;
    const chunks: Buffer[] = [];
    for await (const chunk of answer) chunks.push(Buffer.from(chunk));
    // The next page is at the front as well.
    const body = Buffer.concat(chunks).toString().replaceAll(this.#options.target, this.url);
    const headers = { "content-type": answer.headers["content-type"] ?? "", ...indexOf(answer) };
    return { status: answer.statusCode ?? 502, headers, body: Buffer.from(body) };
  }
}

/** Nomad's answer about the state that it listed. */
function indexOf({ headers }: IncomingMessage): Record<string, string> {
  const index = headers["x-nomad-index"];
  return typeof index === "string" ? { "x-nomad-index": index } : {};
}
