/** Google's token service at its own name, behind a proxy: the library gets tokens of service accounts nowhere else. */
import { generateKeyPairSync } from "node:crypto";
import {
  createServer as createProxy,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { createServer, type Server as SecuredServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";
import { CertificateAuthority } from "./certificates.ts";

export const SERVICE_ACCOUNT_TOKEN = "service-account";

const HOST = "oauth2.googleapis.com";

export class GoogleTokens {
  /** PEM: who vouches for the token service. */
  readonly authority: string;
  /** The issuers of the assertions that were exchanged for tokens. */
  readonly users: string[] = [];
  readonly #tunnels: Duplex[] = [];
  readonly #service: SecuredServer;
  readonly #proxy: Server;

  private constructor(authority: CertificateAuthority) {
    this.authority = authority.certificate;
    const { certificate, key } = authority.issue({ commonName: HOST, hosts: [HOST] });
    this.#service = createServer(
      { cert: certificate, key },
      (request, response) => void this.#grant(request, response),
    );
    this.#proxy = createProxy();
    this.#proxy.on("connect", (request, client) => {
      if (request.url !== `${HOST}:443`) return void client.end("HTTP/1.1 403 Forbidden\r\n\r\n");
      const service = connect((this.#service.address() as AddressInfo).port, "127.0.0.1", () => {
        client.write("HTTP/1.1 200 OK\r\n\r\n");
        service.pipe(client).pipe(service);
      });
      this.#tunnels.push(service, client);
      for (const socket of [service, client]) socket.on("error", () => socket.destroy());
    });
  }

  async #grant(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const assertion = new URLSearchParams(body).get("assertion") ?? JSON.parse(body || "{}").assertion;
    const claims = JSON.parse(Buffer.from(String(assertion).split(".")[1] ?? "", "base64url").toString());
    this.users.push(claims.iss);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(
      JSON.stringify({ access_token: SERVICE_ACCOUNT_TOKEN, token_type: "Bearer", expires_in: 3600 }),
    );
  }

  static async start(): Promise<GoogleTokens> {
    const tokens = new GoogleTokens(new CertificateAuthority());
    for (const server of [tokens.#service, tokens.#proxy])
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return tokens;
  }

  /** For HTTPS_PROXY. */
  get proxy(): string {
    return `http://127.0.0.1:${(this.#proxy.address() as AddressInfo).port}`;
  }

  /** The file of a service account's key. */
  credentials(account: string): string {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    return JSON.stringify({
      type: "service_account",
      project_id: "p",
      private_key_id: "1",
      private_key: privateKey.export({ type: "pkcs8", format: "pem" }),
      client_email: account,
      client_id: "2",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#tunnels) socket.destroy();
    for (const server of [this.#service, this.#proxy]) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }
}
