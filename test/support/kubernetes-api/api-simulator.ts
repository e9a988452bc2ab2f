/**
 * A Kubernetes API server in memory: enough of one for clients that list and watch, and for kubectl, and able to misbehave
 * on demand. Nothing that talks to it can tell it from a real one by what it does with DNS's kinds of objects.
 */
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import type { Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { ApiError, badRequest, notFound } from "./api-error.ts";
import { discoveryDocument } from "./discovery.ts";
import { encodeStatus, negotiate } from "./encoding.ts";
import { type AnyRequest, type AnyResponse, Exchange, socketOf } from "./exchange.ts";
import { FaultRules, type RequestFacts } from "./faults.ts";
import { ObjectStorage } from "./object-storage.ts";
import { PortForwards } from "./port-forward.ts";
import { parseTarget, ResourceRequests, readObject, type Target, verbOf } from "./resource-requests.ts";
import { type ApiObject, isRecord, RESOURCE_TYPES, type ResourceType } from "./resource-types.ts";
import type { StreamedLists } from "./watch-response.ts";

export interface TlsFiles {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Ask clients for certificates of this authority, PEM. */
  readonly clientAuthority?: string;
}

export interface ApiSimulatorOptions {
  readonly tls?: TlsFiles;
  /** Offer HTTP/2 beside HTTP/1.1; only with `tls`. */
  readonly http2?: boolean;
  /**
   * Whether watches may begin with a list (`sendInitialEvents`). Default true; "unheard of" for servers before 1.19, which pass over what
   * they do not know: all objects come, and nothing says where they end. "without progress" for servers whose etcd (3.4 as Debian has it)
   * cannot say how far a watch is: they begin well, and end in an error 500.
   */
  readonly streamsLists?: StreamedLists;
  /** Default true. */
  readonly servesProtobuf?: boolean;
  /** Default 1000. */
  readonly bookmarkIntervalMs?: number;
  /** Default all of {@link RESOURCE_TYPES}. */
  readonly types?: readonly ResourceType[];
}

/** The credentials of a request: its headers and the common name of its certificate. */
export interface Caller {
  readonly authorization: string | undefined;
  readonly commonName: string | undefined;
  readonly headers: AnyRequest["headers"];
  /** Names and values in turn, each as it came. */
  readonly rawHeaders: AnyRequest["rawHeaders"];
  /** `1.1` or `2.0`. */
  readonly httpVersion: string;
}

export class ApiSimulator implements AsyncDisposable {
  readonly storage = new ObjectStorage();
  readonly faults = new FaultRules();
  /** Every request so far, refused ones included. */
  readonly requests: RequestFacts[] = [];
  /** Authenticates a caller. Default: every caller. */
  admits: (caller: Caller) => boolean = () => true;
  /** Authorizes a request. Default: every request. */
  permits: (request: RequestFacts) => boolean = () => true;
  /** The caller, in the words of a refusal. */
  account = "test";
  readonly #options: ApiSimulatorOptions;
  readonly #types: readonly ResourceType[];
  readonly #resources: ResourceRequests;
  readonly #portForwards = new PortForwards();
  readonly #sockets = new Set<Socket>();
  readonly #frozen = new WeakSet<Socket>();
  readonly #exchanges = new Set<Exchange>();
  #server: Server | undefined;
  #port = 0;

  private constructor(options: ApiSimulatorOptions) {
    this.#options = options;
    this.#types = options.types ?? RESOURCE_TYPES;
    this.#resources = new ResourceRequests(this.storage, {
      servesProtobuf: options.servesProtobuf ?? true,
      streamsLists: options.streamsLists ?? true,
      bookmarkIntervalMs: options.bookmarkIntervalMs ?? 1000,
    });
    for (const name of ["default", "kube-system"]) this.put("namespaces", { metadata: { name } });
  }

  static async start(options: ApiSimulatorOptions = {}): Promise<ApiSimulator> {
    const simulator = new ApiSimulator(options);
    await simulator.open();
    return simulator;
  }

  get url(): string {
    return `${this.#options.tls === undefined ? "http" : "https"}://127.0.0.1:${this.#port}`;
  }

  get port(): number {
    return this.#port;
  }

  /** Makes or replaces an object, of a resource such as `services`. */
  put(plural: string, value: unknown): ApiObject {
    const type = this.type(plural);
    return this.storage.put(type, readObject(value, { type, namespace: "", name: "" }));
  }

  delete(plural: string, namespace: string, name: string): void {
    this.storage.delete(this.type(plural), namespace, name);
  }

  type(plural: string): ResourceType {
    const found = RESOURCE_TYPES.find((type) => type.plural === plural);
    if (found === undefined) throw new Error(`no resource ${plural}`);
    return found;
  }

  /** Has `kubectl port-forward` reach a port of this machine. @param pod `namespace/name` */
  forwardPort(pod: string, port: number, localPort: number): void {
    this.#portForwards.open(pod, port, localPort);
  }

  /** Watches that are open now. */
  get openWatches(): number {
    return [...this.#exchanges].filter(({ facts }) => facts.verb === "watch").length;
  }

  /** Ends every connection, as a crash of the server or of a middlebox does. */
  cutConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Makes all present connections half-open: nothing gets through any more, without an error on either side. */
  freezeConnections(): void {
    for (const socket of this.#sockets) this.#frozen.add(socket);
    for (const exchange of this.#exchanges) exchange.freeze();
  }

  /** Stops listening and ends every connection. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = once(server, "close");
    server.close();
    this.cutConnections();
    await closed;
  }

  /** Listens again where it listened before. */
  async open(): Promise<void> {
    const server = this.#createServer();
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.on("upgrade", (request: IncomingMessage, connection: Duplex, head: Buffer) =>
      this.#upgrade(request, connection, head),
    );
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#server = server;
    const address = server.address();
    if (isRecord(address) && typeof address.port === "number") this.#port = address.port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #createServer(): Server {
    const handle = (request: AnyRequest, response: AnyResponse) => void this.#handle(request, response);
    const { tls, http2 } = this.#options;
    if (tls === undefined) return createHttpServer(handle);
    const options = {
      cert: tls.certificate,
      key: tls.key,
      ...(tls.clientAuthority !== undefined && {
        ca: tls.clientAuthority,
        requestCert: true,
        rejectUnauthorized: false,
      }),
    };
    return http2
      ? createSecureServer({ ...options, allowHTTP1: true }, handle)
      : createHttpsServer(options, handle);
  }

  async #handle(request: AnyRequest, response: AnyResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://api");
    const target = parseTarget(url.pathname, this.#types);
    const facts: RequestFacts = {
      verb: verbOf(request.method ?? "", target, url.searchParams),
      resource: target?.type.plural ?? "",
      path: url.pathname,
      parameters: url.searchParams,
    };
    this.requests.push(facts);
    const fault = this.faults.take(facts);
    const exchange = new Exchange(request, response, facts, fault, this.#isFrozen(request));
    this.#exchanges.add(exchange);
    exchange.onClose(() => this.#exchanges.delete(exchange));
    try {
      this.#authenticate(request, facts);
      if (fault?.kind === "status") {
        const headers = fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) };
        if (fault.body === undefined) throw new ApiError(fault.code, "Fault", "on demand", fault.retryAfter);
        this.#send(exchange, fault.code, "text/plain", Buffer.from(fault.body), headers);
      } else if (fault?.kind === "answer") {
        this.#send(exchange, 200, fault.contentType, Buffer.from(fault.body));
      } else await this.#answer(exchange, url.pathname, target);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const { retryAfterSeconds } = error;
      const format = negotiate(request.headers.accept, this.#options.servesProtobuf ?? true);
      const type = format === "protobuf" ? "application/vnd.kubernetes.protobuf" : "application/json";
      const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
      const body = encodeStatus(format === "table" ? "json" : format, error.toStatus());
      this.#send(exchange, error.code, type, body, headers);
    }
  }

  #upgrade(request: IncomingMessage, connection: Duplex, head: Buffer): void {
    const { pathname: path, searchParams: parameters } = new URL(request.url ?? "/", "http://api");
    const facts: RequestFacts = { verb: "create", resource: "pods/portforward", path, parameters };
    this.requests.push(facts);
    connection.on("error", () => undefined);
    if (head.length > 0) connection.unshift(head);
    try {
      this.#authenticate(request, facts);
      const pod = PortForwards.podOf(path);
      if (pod === undefined) throw notFound(path);
      if (!this.#portForwards.accept(pod, request, connection)) throw badRequest("Upgrade: SPDY/3.1 alone");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const body = JSON.stringify(error.toStatus());
      const head = [
        ...[`HTTP/1.1 ${error.code} ${error.reason}`, "Content-Type: application/json", "Connection: close"],
        ...[`Content-Length: ${Buffer.byteLength(body)}`, "", body],
      ];
      connection.end(head.join("\r\n"));
    }
  }

  async #answer(exchange: Exchange, path: string, target: Target | undefined): Promise<void> {
    if (target !== undefined) {
      await this.#resources.answer(exchange, target);
      return;
    }
    const document = discoveryDocument(path, this.#types, `127.0.0.1:${this.#port}`);
    if (document === undefined)
      throw new ApiError(404, "NotFound", "the server could not find the requested resource");
    this.#send(exchange, 200, "application/json", Buffer.from(JSON.stringify(document)));
  }

  #authenticate(request: AnyRequest, facts: RequestFacts): void {
    const caller: Caller = {
      authorization: request.headers.authorization,
      commonName: commonNameOf(socketOf(request)),
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      httpVersion: request.httpVersion,
    };
    if (!this.admits(caller)) throw new ApiError(401, "Unauthorized", "Unauthorized");
    if (this.permits(facts)) return;
    const { verb, resource } = facts;
    const message = `${resource} is forbidden: User "${this.account}" cannot ${verb} resource "${resource}" at the cluster scope`;
    throw new ApiError(403, "Forbidden", message);
  }

  #send(
    exchange: Exchange,
    status: number,
    type: string,
    body: Buffer,
    headers: Readonly<Record<string, string>> = {},
  ): void {
    exchange.head(status, { ...headers, "content-type": type });
    exchange.write(body);
    exchange.end();
  }

  #isFrozen(request: AnyRequest): boolean {
    const socket = socketOf(request);
    // TLS wraps the socket that the server tracks.
    return [...this.#sockets].some((each) => this.#frozen.has(each) && each.remotePort === socket.remotePort);
  }
}

function commonNameOf(socket: Socket): string | undefined {
  if (!isTls(socket) || !socket.authorized) return undefined;
  const name = socket.getPeerCertificate().subject?.CN;
  return typeof name === "string" ? name : undefined;
}

/** Not by `in`: the socket of an HTTP/2 session passes on what is read of it, and does not say what there is. */
function isTls(socket: Socket): socket is TLSSocket {
  return Reflect.get(socket, "encrypted") === true;
}
