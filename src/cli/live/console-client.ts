/** Client of a running server's console: requests and events. */
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { textMember } from "../../kubernetes/objects/json.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { escapeControls } from "../../lib/logging/log.ts";
import { FlagError } from "../flag-table.ts";
import type { LiveFlags } from "./flags.ts";

/** Milliseconds until an answer begins. */
const TIMEOUT = 10_000;
/** Milliseconds without an event. The server sends keep-alives more often than that. */
const SILENCE = 30_000;
/** Bytes of an answer; characters of an event, and of an error message. */
const MAX_ANSWER = 16 * 1024 * 1024;
const MAX_REASON = 4_096;

/** Reason for the end of a stream that the server did not end in order. */
export const CLOSED = "the connection was closed";

export interface ConsoleEvent {
  readonly name: string;
  readonly data: unknown;
}

/** The server could not be reached, or did not answer. */
export class ConsoleFault extends FlagError {
  /** Without the address of the server. */
  readonly reason: string;
  /** Whether a retry may succeed: no process listens, or the connection broke. */
  readonly mayPass: boolean;

  constructor(message: string, reason: string, mayPass = false) {
    super(message, 2, false);
    this.reason = reason;
    this.mayPass = mayPass;
  }
}

export class ConsoleClient {
  readonly #host: string;
  readonly #port: number;
  readonly #headers: Readonly<Record<string, string>>;

  /** @throws FlagError */
  constructor({ server, tokenFile }: Pick<LiveFlags, "server" | "tokenFile">) {
    const match = /^(?:http:\/\/)?(?:(\[[0-9a-fA-F:.]+\]|[^:[\]/]*):)?(\d{1,5})\/?$/.exec(server);
    this.#port = Number(match?.[2]);
    if (match === null || this.#port === 0 || this.#port > 0xffff)
      throw fault(`-server ${server}: not an address with a port, such as 127.0.0.1:8184`);
    this.#host = (match[1] ?? "").replace(/^\[(.*)\]$/, "$1") || "127.0.0.1";
    this.#headers = tokenFile === "" ? {} : { authorization: `Bearer ${readToken(tokenFile)}` };
  }

  /** @throws FlagError with a remedy */
  async get(path: string): Promise<unknown> {
    return this.#read(await this.open(path));
  }

  /** @throws FlagError with a remedy */
  async post(path: string, body: object): Promise<unknown> {
    return this.#read(await this.open(path, JSON.stringify(body)));
  }

  /** The server's address as users write it. */
  get address(): string {
    return `-server ${this.#host.includes(":") ? `[${this.#host}]` : this.#host}:${this.#port}`;
  }

  /**
   * Yields events until the server ends them or the signal aborts.
   * @throws ConsoleFault
   */
  async *eventsOf(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<ConsoleEvent> {
    const stop = (): void => void response.destroy();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    response.setEncoding("utf8");
    response.setTimeout(SILENCE, () => response.destroy(new Error(`sent nothing for ${SILENCE / 1000} s`)));
    /** Of an event whose end has not arrived. */
    let parts: string[] = [];
    let characters = 0;
    try {
      for await (const chunk of response) {
        const part = String(chunk);
        const hasEnd =
          part.includes("\n\n") || (part.startsWith("\n") && parts.at(-1)?.endsWith("\n") === true);
        parts.push(part);
        characters += part.length;
        if (characters > MAX_ANSWER) throw this.#tooLong();
        if (!hasEnd) continue;
        const events = parts.join("").split("\n\n");
        const rest = events.pop() ?? "";
        parts = [rest];
        characters = rest.length;
        for (const event of events) {
          const [, name, data] = /^event: (\w+)\ndata: (.*)$/.exec(event) ?? [];
          if (name !== undefined && data !== undefined) yield { name, data: this.#parsed(data) };
        }
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ConsoleFault) throw error;
      throw this.#lost(error);
    } finally {
      signal.removeEventListener("abort", stop);
      response.destroy();
    }
  }

  async #read(response: IncomingMessage): Promise<unknown> {
    const chunks: Buffer[] = [];
    let octets = 0;
    response.setTimeout(TIMEOUT, () => response.destroy(new Error(`no more within ${TIMEOUT / 1000} s`)));
    try {
      for await (const chunk of response) {
        chunks.push(Buffer.from(chunk));
        octets += chunk.length;
        if (octets > MAX_ANSWER) throw this.#tooLong();
      }
    } catch (error) {
      if (error instanceof ConsoleFault) throw error;
      throw this.#lost(error);
    }
    return this.#parsed(Buffer.concat(chunks).toString());
  }

  /** @throws ConsoleFault */
  open(path: string, body?: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = request({
        host: this.#host,
        port: this.#port,
        path,
        method: body === undefined ? "GET" : "POST",
        headers: { ...this.#headers, ...(body !== undefined && { "content-type": "application/json" }) },
      });
      sent.setTimeout(TIMEOUT, () => sent.destroy(new Error(`no answer within ${TIMEOUT / 1000} s`)));
      sent.once("error", (error) => reject(this.#fault(reasonOf(error, this.#port), true)));
      sent.once("response", (response) => {
        sent.setTimeout(0);
        if (response.statusCode === 200) {
          resolve(response);
          return;
        }
        let text = "";
        response.setEncoding("utf8").on("data", (chunk: string) => {
          if (text.length < MAX_REASON) text += chunk;
        });
        response.once("error", (error) => reject(this.#lost(error)));
        response.once("end", () => {
          if (response.statusCode === 401) {
            const sent = "authorization" in this.#headers;
            reject(
              this.#fault(
                sent
                  ? "the token is wrong: see token_file in the server's Corefile"
                  : "the console needs a token: give -token-file FILE, with the file of token_file in the server's Corefile",
              ),
            );
            return;
          }
          const told = textMember(jsonOf(text), "error");
          reject(
            this.#fault(
              told === "" ? `answers with status ${response.statusCode}: is that a console?` : told,
              // From a proxy in between, while the server is away.
              (response.statusCode ?? 0) > 500,
            ),
          );
        });
      });
      sent.end(body);
    });
  }

  #parsed(text: string): unknown {
    const value = jsonOf(text);
    if (value === undefined) throw this.#fault("answers with invalid JSON: is that a console?");
    return value;
  }

  #tooLong(): ConsoleFault {
    return this.#fault("answers with too much data: is that a console?");
  }

  #lost(error: unknown): ConsoleFault {
    return this.#fault(error instanceof Error ? reasonOf(error, this.#port) : String(error), true);
  }

  /** @param told text from the server, which may contain terminal control characters */
  #fault(told: string, mayPass = false): ConsoleFault {
    const reason = escapeControls(told);
    return new ConsoleFault(`${this.address}: ${reason}`, reason, mayPass);
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function reasonOf(error: Error, port: number): string {
  const code = "code" in error ? String(error.code) : "";
  if (code === "ECONNRESET" || code === "EPIPE") return CLOSED;
  if (code.startsWith("HPE_")) return "does not speak HTTP: is that a console?";
  if (code !== "ECONNREFUSED") return error.message;
  return (
    "nothing listens there (connection refused): does the server run, with 'console' in its Corefile? " +
    `To reach one in a pod: kubectl port-forward pod/NAME ${port}`
  );
}

/** For requests beside a stream; the stream itself detects that its server has gone. @throws any other error */
export function unlessLost(error: unknown): undefined {
  if (error instanceof ConsoleFault && error.mayPass) return undefined;
  throw error;
}

function readToken(file: string): string {
  let token: string;
  try {
    token = readFileSync(file, "utf8").trim();
  } catch (error) {
    throw fault(`-token-file ${file}: ${fileFault(error)}`);
  }
  // A header cannot hold anything else.
  if (/^[ -~]{1,1024}$/.test(token)) return token;
  throw fault(`-token-file ${file}: holds no token: one line of at most 1024 printable ASCII characters`);
}

function fault(message: string): FlagError {
  return new FlagError(message, 2, false);
}
