/** Azure as far as lists of records go: the Resource Manager, and what hands out tokens in a cluster. Over TLS: a token goes nowhere else. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { CertificateAuthority } from "./certificates.ts";

/** A record set as the Resource Manager lists it. */
export interface AzureRecordSet {
  readonly name: string;
  readonly type: string;
  readonly properties: Readonly<Record<string, unknown>>;
}

export class AzureServer {
  /** By path of the list. */
  readonly zones: Map<string, readonly AzureRecordSet[]> = new Map();
  /** Secrets and assertions that get a token. */
  accepted: ReadonlySet<string> = new Set(["s3cret", "jwt"]);
  /** Their answers, and the requested lists. */
  token = "token";
  /** Statuses that the next lists are answered with. */
  readonly faults: number[] = [];
  /** The credentials that clients signed in with. */
  readonly signIns: string[] = [];
  /** PEM: who vouches for this server. */
  readonly authority: string;
  readonly #server: Server;

  private constructor(authority: CertificateAuthority) {
    const { certificate, key } = authority.issue({
      commonName: "azure.test",
      hosts: ["127.0.0.1", "localhost"],
    });
    this.authority = authority.certificate;
    this.#server = createServer(
      { cert: certificate, key },
      (request, response) => void this.#answer(request, response),
    );
  }

  static async start(): Promise<AzureServer> {
    const server = new AzureServer(new CertificateAuthority());
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const answer = url.pathname.startsWith("/subscriptions/")
      ? this.#list(url, request.headers.authorization)
      : url.pathname.startsWith("/metadata/identity/oauth2/token")
        ? this.#signInByMetadata(url, request.headers.metadata === "true")
        : this.#signIn(url, new URLSearchParams(body));
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(JSON.stringify(answer.body));
  }

  #signIn(url: URL, parameters: URLSearchParams): Answer {
    const [, tenant = ""] = url.pathname.split("/");
    const base = `${this.url}/${tenant}`;
    if (url.pathname.endsWith("/.well-known/openid-configuration"))
      return {
        status: 200,
        body: {
          token_endpoint: `${base}/oauth2/v2.0/token`,
          authorization_endpoint: `${base}/oauth2/v2.0/authorize`,
          issuer: `${base}/v2.0`,
          jwks_uri: `${base}/keys`,
        },
      };
    const secret = parameters.get("client_secret") ?? parameters.get("client_assertion") ?? "";
    this.signIns.push(`${parameters.get("client_id")} ${secret} ${parameters.get("scope")}`);
    if (this.accepted.has(secret))
      return { status: 200, body: { token_type: "Bearer", expires_in: 3600, access_token: this.token } };
    const description = "AADSTS7000215: Invalid client secret provided.";
    return {
      status: 401,
      body: { error: "invalid_client", error_description: description, error_codes: [7000215] },
    };
  }

  /** The metadata of an instance: for managed identities. */
  #signInByMetadata({ searchParams }: URL, isMeant: boolean): Answer {
    if (!isMeant) return { status: 400, body: { error: "invalid_request" } };
    const resource = searchParams.get("resource");
    this.signIns.push(`managed ${searchParams.get("client_id")} ${resource}`);
    const expiry = { expires_in: 3600, expires_on: Math.floor(Date.now() / 1000) + 3600 };
    return { status: 200, body: { token_type: "Bearer", ...expiry, resource, access_token: this.token } };
  }

  #list(url: URL, authorization: string | undefined): Answer {
    const fault = this.faults.shift();
    if (fault !== undefined) return { status: fault, body: FAULTS[fault] };
    if (authorization !== `Bearer ${this.token}`)
      return {
        status: 401,
        body: { error: { code: "AuthenticationFailed", message: "Authentication failed." } },
      };
    const sets = this.zones.get(url.pathname);
    if (sets === undefined)
      return {
        status: 404,
        body: { error: { code: "ResourceNotFound", message: "The resource was not found." } },
      };
    const from = Number(url.searchParams.get("$skipToken") ?? 0);
    const next = new URL(url);
    next.searchParams.set("$skipToken", String(from + PAGE));
    const value = sets.slice(from, from + PAGE);
    return { status: 200, body: from + PAGE < sets.length ? { value, nextLink: next.href } : { value } };
  }
}

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

const PAGE = 3;

const FAULTS: Readonly<Record<number, unknown>> = {
  403: {
    error: {
      code: "AuthorizationFailed",
      message:
        "The client 'c1' does not have authorization to perform action 'Microsoft.Network/dnsZones/all/read' over scope '/subscriptions/s1'.",
    },
  },
  429: { error: { code: "TooManyRequests", message: "Too many requests." } },
};
