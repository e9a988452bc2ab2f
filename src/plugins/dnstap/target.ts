/** The arguments of the directive. */

const MIB = 1024 * 1024;
const MESSAGES = 10_000;

export class TapTarget {
  readonly listens: boolean;
  readonly full: boolean;
  /** Path of a Unix socket; empty for TCP. */
  readonly path: string;
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  /** Bound for the bytes that wait in a socket. */
  readonly writeBuffer: number;
  /** Bound for the messages that wait. */
  readonly queue: number;
  /** The target as written, for messages. */
  readonly text: string;

  private constructor(parts: Omit<TapTarget, never>) {
    this.listens = parts.listens;
    this.full = parts.full;
    this.path = parts.path;
    this.host = parts.host;
    this.port = parts.port;
    this.isTls = parts.isTls;
    this.writeBuffer = parts.writeBuffer;
    this.queue = parts.queue;
    this.text = parts.text;
  }

  /** @returns an error message for invalid arguments */
  static parse(words: readonly string[]): TapTarget | string {
    const listens = words[0] === "listen";
    const [socket = "", second, third, fourth, ...more] = listens ? words.slice(1) : words;
    if (socket === "") return "dnstap: a socket is missing";
    if (more.length > 0) return `dnstap: '${more[0]}' is one argument too many`;
    const writeBuffer = numberIn(third ?? "1", 1, 1024);
    if (writeBuffer === undefined) return `dnstap: '${third}' is not a write buffer size from 1 to 1024 MiB`;
    const queue = numberIn(fourth ?? "1", 1, 4096);
    if (queue === undefined) return `dnstap: '${fourth}' is not a queue multiple from 1 to 4096`;
    const place = placeOf(socket);
    if (place === undefined) return `dnstap: '${socket}' is not a path, tcp://HOST:PORT or tls://HOST:PORT`;
    return new TapTarget({
      listens,
      full: second === "full",
      ...place,
      writeBuffer: writeBuffer * MIB,
      queue: queue * MESSAGES,
      text: socket,
    });
  }
}

type Place = Pick<TapTarget, "path" | "host" | "port" | "isTls">;

function placeOf(socket: string): Place | undefined {
  const network = /^(tcp|tls):\/\/(\[[^\]]+\]|[^:]*):(\d{1,5})$/.exec(socket);
  if (network !== null) {
    const port = Number(network[3]);
    if (port > 0xffff) return undefined;
    return {
      path: "",
      host: (network[2] ?? "").replace(/^\[(.*)\]$/, "$1"),
      port,
      isTls: network[1] === "tls",
    };
  }
  if (/^(tcp|tls):/.test(socket)) return undefined;
  const path = socket.replace(/^unix:\/\//, "");
  return path === "" ? undefined : { path, host: "", port: 0, isTls: false };
}

function numberIn(word: string, least: number, most: number): number | undefined {
  const value = /^\d+$/.test(word) ? Number(word) : Number.NaN;
  return value >= least && value <= most ? value : undefined;
}
