/** Google Cloud DNS as far as listing goes, with what hands out tokens: the token service for federated identities, and the metadata server. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface CloudRecordSet {
  readonly name: string;
  readonly type: string;
  readonly ttl: number;
  readonly rrdatas: readonly string[];
}

export const FEDERATED_TOKEN = "federated";
export const METADATA_TOKEN = "metadata";

export class CloudDnsServer {
  /** By `project/zone`. */
  readonly zones: Map<string, readonly CloudRecordSet[]> = new Map();
  tokens: ReadonlySet<string> = new Set([FEDERATED_TOKEN, METADATA_TOKEN]);
  /** The token that the token service issues. */
  federatedToken = FEDERATED_TOKEN;
  /** Statuses that the next lists are answered with. */
  readonly faults: number[] = [];
  /** Tokens that lists were asked for with. */
  readonly users: string[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(): Promise<CloudDnsServer> {
    const server = new CloudDnsServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}`;
  }

  /** Credentials of a workload whose own token is in a file. */
  credentials(tokenFile: string): string {
    return JSON.stringify({
      type: "external_account",
      audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/k",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
      token_url: `${this.url}/v1/token`,
      credential_source: { file: tokenFile },
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", this.url);
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const [status, content] = this.#respond(url, body, request.headers.authorization ?? "");
    response.writeHead(status, { "content-type": "application/json", "metadata-flavor": "Google" });
    response.end(JSON.stringify(content));
  }

  #respond(url: URL, body: string, authorization: string): [number, unknown] {
    if (url.pathname === "/v1/token") {
      const isKnown = new URLSearchParams(body).get("subject_token") === "jwt";
      if (!isKnown) return [400, { error: "invalid_grant", error_description: "The token is not known" }];
      return [200, { access_token: this.federatedToken, token_type: "Bearer", expires_in: 3600 }];
    }
    if (url.pathname.startsWith("/computeMetadata/v1/instance/service-accounts/default/token"))
      return [200, { access_token: METADATA_TOKEN, token_type: "Bearer", expires_in: 3600 }];
    if (url.pathname.startsWith("/computeMetadata/")) return [200, {}];
    const [, project, zone] =
      /^\/dns\/v1\/projects\/([^/]+)\/managedZones\/([^/]+)\/rrsets$/.exec(url.pathname) ?? [];
    const fault = this.faults.shift();
    if (fault !== undefined) return [fault, { error: FAULTS[fault] }];
    const token = authorization.replace("Bearer ", "");
    this.users.push(token);
    if (!this.tokens.has(token))
      return [
        401,
        { error: { code: 401, message: "Request had invalid credentials.", status: "UNAUTHENTICATED" } },
      ];
    const sets = this.zones.get(`${project}/${zone}`);
    if (sets === undefined)
      return [
        404,
        {
          error: {
            code: 404,
            message: `The 'parameters.managedZone' resource named '${zone}' does not exist.`,
          },
        },
      ];
    const from = Number(url.searchParams.get("pageToken") ?? 0);
    const next = from + PAGE < sets.length ? { nextPageToken: String(from + PAGE) } : {};
    const rrsets = sets.slice(from, from + PAGE).map((set) => ({ kind: "dns#resourceRecordSet", ...set }));
    return [200, { kind: "dns#resourceRecordSetsListResponse", rrsets, ...next }];
  }
}

const PAGE = 3;

const FAULTS: Readonly<Record<number, unknown>> = {
  403: {
    code: 403,
    message: "Permission 'dns.resourceRecordSets.list' denied on resource 'projects/p'.",
    status: "PERMISSION_DENIED",
  },
  429: { code: 429, message: "Quota exceeded.", status: "RESOURCE_EXHAUSTED" },
  503: { code: 503, message: "The service is away.", status: "UNAVAILABLE" },
};
