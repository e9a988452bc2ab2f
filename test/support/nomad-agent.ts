/** A Nomad agent as far as services go: the two endpoints that list them, with blocking queries, ACL tokens and a filter. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Registration {
  readonly service: string;
  readonly namespace?: string;
  readonly address: string;
  readonly port: number;
  readonly tags?: readonly string[];
}

export class NomadAgent {
  /** Token that requests must carry, none while empty. */
  token = "";
  /** Answers every request with this status, 0 for what it should. */
  failure = 0;
  /** Of the last request. */
  authorization = "";
  /** Paths with parameters, in order. */
  readonly requests: string[] = [];
  readonly #server: Server;
  #registrations: readonly Registration[] = [];
  #index = 10;
  /** Blocking queries under way. */
  readonly #waiting = new Set<() => void>();

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  static async start(): Promise<NomadAgent> {
    const agent = new NomadAgent();
    await new Promise<void>((resolve) => agent.#server.listen(0, "127.0.0.1", resolve));
    return agent;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  register(...registrations: readonly Registration[]): void {
    this.#registrations = registrations;
    this.#index++;
    this.wake();
  }

  /** Ends blocking queries, as their time being over does. */
  wake(): void {
    for (const end of [...this.#waiting]) end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #answer(request: IncomingMessage, response: ServerResponse): undefined {
    const url = new URL(request.url ?? "/", this.url);
    this.authorization = request.headers.authorization ?? "";
    this.requests.push(`${url.pathname}${url.search}`);
    if (this.failure !== 0) return end(response, this.failure, "No cluster leader");
    if (this.token !== "" && request.headers["x-nomad-token"] !== this.token)
      return end(response, 403, "Permission denied");
    const index = Number(url.searchParams.get("index") ?? 0);
    const respond = (): undefined => {
      response.setHeader("X-Nomad-Index", String(this.#index));
      if (this.failure !== 0) return end(response, this.failure, "No cluster leader");
      if (url.pathname === "/v1/services") return end(response, 200, JSON.stringify(this.#listServices()));
      const name = decodeURIComponent(url.pathname.replace("/v1/service/", ""));
      const namespace = url.searchParams.get("namespace") ?? "default";
      end(response, 200, JSON.stringify(this.#list(name, namespace, url.searchParams.get("filter"))));
    };
    if (index < this.#index) return respond();
    const finish = (): void => {
      this.#waiting.delete(finish);
      respond();
    };
    this.#waiting.add(finish);
    response.on("close", () => this.#waiting.delete(finish));
  }

  #listServices(): unknown {
    const names = new Map<string, Set<string>>();
    for (const { service, namespace = "default" } of this.#registrations)
      names.set(namespace, (names.get(namespace) ?? new Set()).add(service));
    return Array.from(names, ([Namespace, services]) => ({
      Namespace,
      Services: Array.from(services, (ServiceName) => ({ ServiceName, Tags: [] })),
    }));
  }

  /** Of the filter language it knows `"TAG" in Tags`. */
  #list(name: string, namespace: string, filter: string | null): unknown {
    const tag = /^"(.+)" in Tags$/.exec(filter ?? "")?.[1];
    return this.#registrations
      .filter(
        (each) =>
          each.service === name &&
          (each.namespace ?? "default") === namespace &&
          (tag === undefined || each.tags?.includes(tag) === true),
      )
      .map(({ address, port, tags = [] }) => ({
        ID: `_nomad-task-${name}-${address}-${port}`,
        ServiceName: name,
        Namespace: namespace,
        Datacenter: "dc1",
        Tags: tags,
        Address: address,
        Port: port,
      }));
  }
}

function end(response: ServerResponse, status: number, body: string): undefined {
  response.writeHead(status, { "content-type": status === 200 ? "application/json" : "text/plain" });
  response.end(body);
}
