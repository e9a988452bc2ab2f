/**
 * Access control. Reading is free on a loopback address and needs the token elsewhere; actions always need it.
 * Programs send the token itself, a browser exchanges it for a session.
 */
import type { IncomingMessage } from "node:http";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { SessionView } from "../api-types.ts";
import { isLoopbackHost } from "./loopback.ts";
import { RequestError } from "./request-error.ts";

export interface AccessOptions {
  /** `undefined` without a token: no actions then. */
  readonly token: () => string | undefined;
  /** Whether the console listens on a loopback address. */
  readonly isLoopback: boolean;
  /** Milliseconds that never go back. */
  readonly now: () => number;
}

interface Session {
  readonly csrf: string;
  readonly until: number;
}

/** Browsers distinguish cookies by host only, and several consoles may share a host: the port is part of the name. */
const COOKIE = "portolan_session";
/** Milliseconds. */
const LIFETIME = 12 * 3_600_000;
const MAX_SESSIONS = 64;
/** Wrong tokens in a minute from one address, and addresses that are remembered for them; the oldest are dropped. */
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

  /** Takes over sessions, if the token is the same, and failed attempts. */
  inherit(predecessor: Access): void {
    for (const [client, times] of predecessor.#failures) this.#failures.set(client, times);
    if (this.#options.token() === undefined || this.#options.token() !== predecessor.#options.token()) return;
    for (const [id, session] of predecessor.#sessions) this.#sessions.set(id, session);
  }

  /**
   * Authorizes a request that only reads.
   * @returns whether the client still has access, for long-lived streams: a session ends
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
   * Authorizes a request that changes something.
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
      throw new RequestError(403, "the header portolan-csrf does not match the session");
  }

  /** Authorizes a `POST` that only reads. @throws RequestError */
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
    if (!this.#isToken(request, token)) throw new RequestError(401, "wrong token");
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

  /** The client's rights, for the page. @param cookie of a session that has just begun */
  view(request: IncomingMessage, cookie?: string): SessionView {
    const session = this.#session(request, cookie === undefined ? undefined : cookieValue(cookie));
    return {
      readNeedsToken: !this.#options.isLoopback,
      hasToken: this.#options.token() !== undefined,
      signedIn: session !== undefined,
      csrf: session?.csrf ?? "",
    };
  }

  /**
   * A page of another site can make a browser on this machine send requests here. Host, Origin and Sec-Fetch-Site
   * reveal it.
   */
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

  /** @throws RequestError for a client with too many wrong tokens */
  #isToken({ socket }: IncomingMessage, text: string): boolean {
    const now = this.#options.now();
    const client = socket.remoteAddress ?? "";
    const failures = (this.#failures.get(client) ?? []).filter((time) => time > now - MINUTE);
    // A client that guesses is locked out for a while; others are not.
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

/** A form of another site cannot send this type without a preflight request. */
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

/** Without port; `undefined` if the header is missing or malformed. */
function hostOf(header: string | undefined): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[^:[\]]+)(?::\d{1,5})?$/i.exec(header ?? "")?.[1];
}
