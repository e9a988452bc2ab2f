/** A server inside another program or a test. */
import { encodeMessage, type Message, makeQuery } from "../dns/message.ts";
import { Name } from "../dns/name.ts";
import { Flag, RecordClass } from "../dns/numbers.ts";
import type { ResourceRecord } from "../dns/record-kind.ts";
import { formatRecord } from "../dns/resource-record.ts";
import { parseRecordType } from "../dns/type-names.ts";
import type { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { reachableHost } from "../plugin/contract/site.ts";
import { type ClientQuestion, InProcessClient } from "./explaining/in-process-client.ts";
import { askOverTcp, askOverUdp, NoAnswer } from "./explaining/socket-client.ts";
import { Server, type ServerOptions } from "./server.ts";

/** A query for {@link EmbeddedServer.ask}. */
export interface ServerQuestion {
  /** In presentation form; the trailing dot may be left out. */
  readonly name: string;
  /** Mnemonic such as `AAAA` or `TYPE65`; `A` unless given. */
  readonly type?: string;
  /**
   * `process`, the default, goes through the listener's chain to the reply that a client would get, and opens no
   * socket. `udp` and `tcp` use a socket to the address that the server listens on.
   */
  readonly over?: "process" | "udp" | "tcp";
  /** Label of the listener, as `addresses` has it; the first one unless given. */
  readonly listener?: string;
  /** IP address of the client, for queries without a socket; `127.0.0.1` unless given. */
  readonly client?: string;
  /** Sets the DO bit. */
  readonly dnssecOk?: boolean;
  /** Milliseconds to wait for an answer over a socket; 5,000 unless given. */
  readonly timeout?: number;
}

/** The reply: the message, and its records as text with one space between fields, which reads well in assertions. */
export class ServerAnswer {
  readonly message: Message;

  constructor(message: Message) {
    this.message = message;
  }

  /** A number of `Rcode`. */
  get rcode(): number {
    return this.message.rcode;
  }

  /** AA. */
  get authoritative(): boolean {
    return (this.message.flags & Flag.AA) !== 0;
  }

  /** TC. */
  get truncated(): boolean {
    return (this.message.flags & Flag.TC) !== 0;
  }

  get answer(): string[] {
    return this.message.answer.map(recordText);
  }

  get authority(): string[] {
    return this.message.authority.map(recordText);
  }

  get additional(): string[] {
    return this.message.additional.map(recordText);
  }
}

export interface EmbeddedServerOptions extends Omit<ServerOptions, "source"> {
  readonly corefile: string;
  readonly file: string;
}

/** An address in use. */
export interface ListenAddress {
  /** As in metrics: `dns://127.0.0.1:0`, with the port as the Corefile has it. */
  readonly label: string;
  readonly host: string;
  /** The real port, also where the Corefile says 0. */
  readonly port: number;
}

/** Made by `createServer`. It handles no signal, sets no exit code, and prints nothing. */
export class EmbeddedServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #options: EmbeddedServerOptions;
  #corefile: string;

  constructor(options: EmbeddedServerOptions) {
    this.#options = options;
    this.#corefile = options.corefile;
    this.#server = new Server({
      ...options,
      source: () => ({ text: this.#corefile, file: options.file }),
    });
  }

  /**
   * Reads the Corefile, starts its plugins, and listens.
   * @throws ConfigurationError, ListenError, SetupError, or the error of a plugin's start; nothing is left open then
   */
  start(): Promise<void> {
    return this.#server.start();
  }

  /**
   * Puts a Corefile into force, with plugins whose files have changed; open sockets stay open.
   * @param corefile its text; the current one unless given
   * @throws as {@link start}; the running configuration stays in force then
   */
  async reload(corefile?: string): Promise<void> {
    const before = this.#corefile;
    this.#corefile = corefile ?? before;
    try {
      await this.#server.reload();
    } catch (error) {
      this.#corefile = before;
      throw error;
    }
  }

  /**
   * Lets pending queries finish, and closes everything. May be called again, and before a start.
   * @returns the number of plugin hooks that failed
   */
  stop(): Promise<number> {
    return this.#server.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** In the order of the Corefile; empty while nothing listens. */
  get addresses(): readonly ListenAddress[] {
    return this.#server.addresses;
  }

  /** Warnings about the Corefile in force, each a line with its place in front. */
  get warnings(): readonly string[] {
    return (this.#server.configuration?.warnings ?? []).map(
      ({ span, message }) => `${span.file}:${span.line}:${span.column}: ${message}`,
    );
  }

  /** All metrics, in Prometheus's text format. */
  async metrics(): Promise<string> {
    return (await this.#options.metrics.expose()).body;
  }

  /** The registry of these metrics; families may be added. */
  get metricsRegistry(): MetricsRegistry {
    return this.#options.metrics;
  }

  /**
   * Sends a query to the server.
   * @throws NoAnswer at a timeout; RangeError for an unknown type or listener; NameError
   */
  async ask(question: ServerQuestion): Promise<ServerAnswer> {
    const { name, type: typeName = "A", over = "process", timeout = 5_000, dnssecOk = false } = question;
    const type = parseRecordType(typeName.toUpperCase());
    if (type === undefined) throw new RangeError(`${typeName} is not a record type`);
    const asked = { name: Name.parse(name.endsWith(".") ? name : `${name}.`), type, dnssecOk };
    const { label, host, port } = this.#listener(question.listener);
    if (over === "process") {
      const { client } = question;
      return this.#askInProcess(label, { ...asked, ...(client !== undefined && { client }) });
    }
    const octets = encodeMessage(
      makeQuery(
        { name: asked.name, type, class: RecordClass.IN },
        {
          id: this.#options.random.unpredictable() & 0xffff,
          flags: Flag.RD,
          edns: { udpSize: 1232, version: 0, dnssecOk, options: [] },
        },
      ),
    );
    const address = { host: reachableHost(host), port };
    const exchange = over === "udp" ? askOverUdp : askOverTcp;
    return new ServerAnswer(await exchange(address, octets, timeout));
  }

  async #askInProcess(label: string, question: ClientQuestion): Promise<ServerAnswer> {
    const { configuration } = this.#server;
    const listeners = this.addresses.flatMap((address) => this.#server.listener(address.label) ?? []);
    if (configuration === undefined) throw new RangeError("the server is not running");
    const client = new InProcessClient(configuration, listeners, this.#options.clock);
    const { message } = await client.ask(label, question);
    if (message === undefined) throw new NoAnswer("the query was dropped");
    return new ServerAnswer(message);
  }

  #listener(wanted: string | undefined): ListenAddress {
    const { addresses } = this;
    const found = wanted === undefined ? addresses[0] : addresses.find(({ label }) => label === wanted);
    if (found !== undefined) return found;
    const labels = addresses.map(({ label }) => label).join(", ") || "no address";
    throw new RangeError(
      `the server listens at ${labels}${wanted === undefined ? "" : `, not at ${wanted}`}`,
    );
  }
}

function recordText(record: ResourceRecord): string {
  return formatRecord(record).replaceAll("\t", " ");
}
