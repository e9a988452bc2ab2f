/** Checks users and passwords (RFC 7617). Loaded for a web configuration file with users. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { CounterSlot, MetricsRegistry } from "../../plugin/index.ts";
import { type Guesser, PasswordComparer, type PasswordComparerOptions } from "./password-comparer.ts";

/** Bcrypt hashes by name. */
export type Users = ReadonlyMap<string, string>;

export interface BasicAuthOptions extends PasswordComparerOptions {
  readonly metrics: MetricsRegistry;
}

/** Bound for correct passwords that are accepted again without bcrypt. */
const MAX_KNOWN = 100;

export class BasicAuth {
  readonly #comparer: PasswordComparer;
  /** Key of the digests below, which reveal nothing about passwords without it. */
  readonly #secret: Uint8Array;
  /** Least recently used first. */
  readonly #known = new Set<string>();
  readonly #wrong: CounterSlot;
  readonly #busy: CounterSlot;

  constructor(options: BasicAuthOptions) {
    this.#comparer = new PasswordComparer(options);
    this.#secret = nodeCrypto().randomBytes(32);
    const refused = options.metrics.counter({
      name: "portolan_prometheus_refused_scrapes_total",
      help: "Scrapes refused because the user or password was wrong or missing, or too many passwords waited for bcrypt.",
      labels: ["reason"],
    });
    this.#wrong = refused.slot("credentials");
    this.#busy = refused.slot("busy");
  }

  stop(): void {
    this.#comparer.stop();
  }

  /** Calls `admit` at once or later, or answers the request itself. An unknown user takes as long as a known one. */
  check(users: Users, request: IncomingMessage, response: ServerResponse, admit: () => void): void {
    const credentials = readCredentials(request.headers.authorization);
    if (credentials === undefined) {
      this.#refuse(response);
      return;
    }
    const { user, password } = credentials;
    const known = users.get(user);
    const hash = known ?? this.#substitute(users, user);
    const key = this.#hmac(JSON.stringify([user, password, hash])).toString("base64");
    // A removed user may still be in the cache, with the hash that stands in for unknown users.
    if (known !== undefined && this.#known.delete(key)) {
      this.#known.add(key);
      admit();
      return;
    }
    const guesser: Guesser = {
      password,
      hash,
      client: request.socket.remoteAddress ?? "",
      settle: (isMatch) => {
        if (isMatch === undefined) this.#putOff(response, 503);
        else if (!isMatch || known === undefined) this.#refuse(response);
        else {
          this.#remember(key);
          admit();
        }
      },
    };
    const refusal = this.#comparer.add(guesser);
    if (refusal !== undefined) this.#putOff(response, refusal === "client" ? 429 : 503);
    else response.once("close", () => this.#comparer.forget(guesser));
  }

  /** The hash of another user, always the same for a name, so that the duration does not reveal which users exist. */
  #substitute(users: Users, user: string): string {
    const hashes = [...users.values()];
    return hashes[this.#hmac(user).readUInt32BE() % hashes.length] ?? "";
  }

  #hmac(text: string): Buffer {
    return nodeCrypto().createHmac("sha256", this.#secret).update(text).digest();
  }

  #remember(key: string): void {
    const [oldest] = this.#known;
    if (this.#known.size >= MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    this.#known.add(key);
  }

  #refuse(response: ServerResponse): void {
    this.#wrong.increment();
    answer(response, 401, "Unauthorized", { "www-authenticate": "Basic" });
  }

  #putOff(response: ServerResponse, status: 429 | 503): void {
    this.#busy.increment();
    answer(response, status, status === 429 ? "Too Many Requests" : "Service Unavailable", {
      "retry-after": "1",
    });
  }
}

function answer(
  response: ServerResponse,
  status: number,
  reason: string,
  headers: Readonly<Record<string, string>>,
): void {
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
    ...headers,
  });
  response.end(`${reason}\n`);
}

interface Credentials {
  readonly user: string;
  readonly password: string;
}

function readCredentials(header: string | undefined): Credentials | undefined {
  const encoded = /^basic +([\w+/=-]+)$/i.exec(header ?? "")?.[1];
  if (encoded === undefined) return undefined;
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(encoded, "base64"));
  } catch {
    return undefined;
  }
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}
