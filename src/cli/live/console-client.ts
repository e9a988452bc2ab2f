/** Asks the console of a running server, and follows its events. */
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { textMember } from "../../kubernetes/objects/json.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { escapeControls } from "../../lib/logging/log.ts";
import { FlagError } from "../flag-table.ts";
import type { LiveFlags } from "./flags.ts";

/** Milliseconds for an answer to begin. */
const TIMEOUT = 10_000;
/** Milliseconds without an event: the server says at least that nothing happens. */
const SILENCE = 30_000;
/** Octets of an answer; characters of an event, and of the reason why there is none. */
const MAX_ANSWER = 16 * 1024 * 1024;
const MAX_REASON = 4_096;

/** Why a stream ended that no server has ended in order. */
export const CLOSED = "the connection was closed";

export interface ConsoleEvent {
  readonly name: string;
  readonly data: unknown;
}

/** The server could not be asked. */
export class ConsoleFault extends FlagError {
  /** Without the address of the server. */
  readonly reason: string;
  /** It may be well a moment later: nobody listens, or the connection broke. */
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

  /** @throws FlagError with what to do */
  async get(path: string): Promise<unknown> {
    return this.#read(await this.open(path));
  }

  /** @throws FlagError with what to do */
  async post(path: string, body: object): Promise<unknown> {
    return this.#read(await this.open(path, JSON.stringify(body)));
  }

  /** As people call the server. */
  get address(): string {
    return `-server ${this.#host.includes(":") ? `[${this.#host}]` : this.#host}:${this.#port}`;
  }

  /**
   * Events until the server ends them, or the signal says so.
   * @throws ConsoleFault
   */
  async *eventsOf(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<ConsoleEvent> {
    const stop = (): void => void response.destroy();
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
    response.setEncoding("utf8");
    response.setTimeout(SILENCE, () => response.destroy(new Error(`sent nothing for ${SILENCE / 1000} s`)));
    /** Of an event whose end has not come. */
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
                  ? "that is not its token: see token_file in its Corefile"
                  : "it asks for its token: -token-file FILE, as token_file in its Corefile",
              ),
            );
            return;
          }
          const told = textMember(jsonOf(text), "error");
          reject(
            this.#fault(
              told === "" ? `answers with status ${response.statusCode}: is that a console?` : told,
              // A proxy in between, while the server is away.
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
    if (value === undefined) throw this.#fault("answers with what is not valid JSON: is that a console?");
    return value;
  }

  #tooLong(): ConsoleFault {
    return this.#fault("answers with more than anybody asked for: is that a console?");
  }

  #lost(error: unknown): ConsoleFault {
    return this.#fault(error instanceof Error ? reasonOf(error, this.#port) : String(error), true);
  }

  /** @param told what a server says may drive a terminal */
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

/** For what comes beside a stream, which finds out by itself that its server has gone. @throws what is anything else */
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
  // A header holds nothing else.
  if (/^[ -~]{1,1024}$/.test(token)) return token;
  throw fault(`-token-file ${file}: holds no token: one line of at most 1024 printable ASCII characters`);
}

function fault(message: string): FlagError {
  return new FlagError(message, 2, false);
}
