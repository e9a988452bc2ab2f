/**
 * Who may read and who may act. Reading is free on a loopback address and needs the token elsewhere; actions need it always. Programs send
 * the token itself, a browser exchanges it for a session.
 */
import type { IncomingMessage } from "node:http";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { SessionView } from "../api-types.ts";
import { isLoopbackHost } from "./loopback.ts";
import { RequestError } from "./request-error.ts";

export interface AccessOptions {
  /** `undefined` where there is none: then nobody can act. */
  readonly token: () => string | undefined;
  /** The address listened on is one that only this machine reaches. */
  readonly isLoopback: boolean;
  /** Milliseconds that never go back. */
  readonly now: () => number;
}

interface Session {
  readonly csrf: string;
  readonly until: number;
}

/** Browsers tell cookies apart by host alone, and several consoles are at ports of one: the port is part of the name. */
const COOKIE = "portolan_session";
/** Milliseconds. */
const LIFETIME = 12 * 3_600_000;
const MAX_SESSIONS = 64;
/** Wrong tokens in a minute from one address, and addresses that are remembered for them; the oldest go. */
const MAX_FAILURES = 10;
const MAX_GUESSERS = 1_024;
const MINUTE = 60_000;

export class Access {
  readonly #options: AccessOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #failures = new Map<string, number[]>();

  constructor(options: AccessOptions) {
    this.#options = options;
  }

  /** Who is signed in stays so in another configuration with the same token; who guesses, too, is known there. */
  inherit(predecessor: Access): void {
    for (const [client, times] of predecessor.#failures) this.#failures.set(client, times);
    if (this.#options.token() === undefined || this.#options.token() !== predecessor.#options.token()) return;
    for (const [id, session] of predecessor.#sessions) this.#sessions.set(id, session);
  }

  /**
   * Lets a request pass that only reads.
   * @returns whether it would still pass, for who reads on and on: a session ends
   * @throws RequestError
   */
  checkRead(request: IncomingMessage): () => boolean {
    this.#checkOrigin(request);
    if (this.#options.isLoopback || this.#hasToken(request)) return () => true;
    if (this.#session(request) !== undefined) return () => this.#session(request) !== undefined;
    throw new RequestError(
      401,
      "reading needs the token: sign in, or send it as 'authorization: Bearer TOKEN'",
    );
  }

  /**
   * Lets a request pass that changes something.
   * @throws RequestError
   */
  checkAction(request: IncomingMessage): void {
    this.#checkOrigin(request);
    if (this.#options.token() === undefined)
      throw new RequestError(
        403,
        "the console is read-only: write 'token_file FILE' into its block of the Corefile",
      );
    checkJson(request);
    if (this.#hasToken(request)) return;
    const session = this.#session(request);
    if (session === undefined) throw new RequestError(401, "actions need the token: sign in first");
    if (request.headers["portolan-csrf"] !== session.csrf)
      throw new RequestError(403, "the header portolan-csrf is not that of the session");
  }

  /** Checks what a `POST` that only asks has to have. @throws RequestError */
  checkQuestion(request: IncomingMessage): void {
    this.checkRead(request);
    checkJson(request);
  }

  /**
   * Exchanges the token for a session.
   * @returns the value of the header `set-cookie`
   * @throws RequestError
   */
  signIn(request: IncomingMessage, token: string): string {
    this.#checkOrigin(request);
    checkJson(request);
    if (this.#options.token() === undefined) throw new RequestError(403, "the console has no token");
    if (!this.#isToken(request, token)) throw new RequestError(401, "that is not the token");
    const { randomBytes } = nodeCrypto();
    const id = randomBytes(24).toString("base64url");
    if (this.#sessions.size >= MAX_SESSIONS)
      for (const oldest of this.#sessions.keys()) {
        this.#sessions.delete(oldest);
        break;
      }
    const until = this.#options.now() + LIFETIME;
    this.#sessions.set(id, { csrf: randomBytes(24).toString("base64url"), until });
    return `${cookieName(request)}=${id}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${LIFETIME / 1000}`;
  }

  /** @returns the value of the header `set-cookie` */
  signOut(request: IncomingMessage): string {
    this.#checkOrigin(request);
    const id = cookieOf(request);
    if (id !== undefined) this.#sessions.delete(id);
    return `${cookieName(request)}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0`;
  }

  /** What the page needs to know of its own rights. @param cookie of a session that has just begun */
  view(request: IncomingMessage, cookie?: string): SessionView {
    const session = this.#session(request, cookie === undefined ? undefined : cookieValue(cookie));
    return {
      readNeedsToken: !this.#options.isLoopback,
      hasToken: this.#options.token() !== undefined,
      signedIn: session !== undefined,
      csrf: session?.csrf ?? "",
    };
  }

  /** A page of another site can have a browser on this machine send requests here. Host, Origin and Sec-Fetch-Site give it away. */
  #checkOrigin({ headers }: IncomingMessage): void {
    const host = hostOf(headers.host);
    if (host === undefined) throw new RequestError(400, "the header Host is missing");
    if (this.#options.isLoopback && !isLoopbackHost(host))
      throw new RequestError(403, "the header Host names no loopback address: use http://127.0.0.1:PORT/");
    const site = headers["sec-fetch-site"];
    if (site !== undefined && site !== "same-origin" && site !== "none")
      throw new RequestError(403, "requests of other web pages are refused");
    const { origin } = headers;
    if (origin !== undefined && origin !== `http://${headers.host}` && origin !== `https://${headers.host}`)
      throw new RequestError(403, "requests of other web pages are refused");
  }

  #hasToken(request: IncomingMessage): boolean {
    const sent = /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1];
    return sent !== undefined && this.#isToken(request, sent);
  }

  /** @throws RequestError for one who guesses */
  #isToken({ socket }: IncomingMessage, text: string): boolean {
    const now = this.#options.now();
    const client = socket.remoteAddress ?? "";
    const failures = (this.#failures.get(client) ?? []).filter((time) => time > now - MINUTE);
    // Who guesses is kept out for a while; others are not.
    if (failures.length >= MAX_FAILURES) throw new RequestError(429, "too many wrong tokens: wait a minute");
    const token = this.#options.token();
    const { createHash, timingSafeEqual } = nodeCrypto();
    const digest = (word: string): Buffer => createHash("sha256").update(word).digest();
    if (token !== undefined && timingSafeEqual(digest(token), digest(text))) return true;
    this.#failures.delete(client);
    if (this.#failures.size >= MAX_GUESSERS)
      for (const oldest of this.#failures.keys()) {
        this.#failures.delete(oldest);
        break;
      }
    this.#failures.set(client, [...failures, now]);
    return false;
  }

  #session(request: IncomingMessage, id = cookieOf(request)): Session | undefined {
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (session === undefined || id === undefined) return undefined;
    if (session.until > this.#options.now()) return session;
    this.#sessions.delete(id);
    return undefined;
  }
}

/** A form of another site cannot send this type without being asked for leave first. */
function checkJson({ headers }: IncomingMessage): void {
  const [type = ""] = (headers["content-type"] ?? "").split(";");
  if (type.trim().toLowerCase() !== "application/json")
    throw new RequestError(415, "the content type is application/json");
}

function cookieName({ headers }: IncomingMessage): string {
  return `${COOKIE}_${/:(\d{1,5})$/.exec(headers.host ?? "")?.[1] ?? "80"}`;
}

function cookieOf(request: IncomingMessage): string | undefined {
  const wanted = cookieName(request);
  for (const part of (request.headers.cookie ?? "").split(";")) {
    const [name, value] = part.trim().split("=", 2);
    if (name === wanted) return value;
  }
  return undefined;
}

function cookieValue(cookie: string): string | undefined {
  return /=([^;]*)/.exec(cookie)?.[1];
}

/** Without port; `undefined` for none, or one that is not well-formed. */
function hostOf(header: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(header ?? "")?.[1];
}
