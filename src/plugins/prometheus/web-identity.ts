/** Follows changes of a web configuration file, and of the certificates that it names. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { FileWatch } from "../../lib/files/file-watch.ts";
import { IdentityHolder } from "../../lib/files/server-identity.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { type HttpHandler, SetupError, type Site } from "../../plugin/index.ts";
import type { BasicAuth } from "./basic-auth.ts";
import { RateLimit } from "./rate-limit.ts";
import type { WebConfiguration } from "./web-configuration.ts";

/** Milliseconds between two checks of the files. */
const LOOK_INTERVAL = 2_000;

export class WebIdentity {
  readonly holder: IdentityHolder = new IdentityHolder();
  readonly #path: string;
  readonly #site: Site;
  #configuration: WebConfiguration | undefined;
  #watch: FileWatch | undefined;
  #basicAuth: BasicAuth | undefined;
  #rateLimit: RateLimit | undefined;
  #isStopped = false;

  constructor(path: string, site: Site) {
    this.#path = path;
    this.#site = site;
  }

  /** Whether the file configures TLS. */
  get isEncrypted(): boolean {
    return this.#configuration?.identity !== undefined;
  }

  /** @throws SetupError */
  async load(): Promise<void> {
    try {
      await this.#take(await this.#read());
    } catch (error) {
      throw new SetupError(`could not load web configuration ${messageOf(error)}`);
    }
  }

  /** Follows changes from now on. */
  async follow(): Promise<void> {
    const files = this.#configuration?.files ?? [this.#path];
    const watch = new FileWatch({
      paths: [...new Set(files)],
      intervalMs: LOOK_INTERVAL,
      clock: this.#site.clock,
      onChange: () => this.#reread(),
      onError: (error) => this.#report(error),
    });
    this.#watch?.stop();
    this.#watch = watch;
    await watch.start();
    if (this.#isStopped) watch.stop();
  }

  stop(): void {
    this.#isStopped = true;
    this.#watch?.stop();
    this.#basicAuth?.stop();
  }

  /** Adds the headers of the file, and enforces its users and its rate limit. */
  around(handler: HttpHandler): HttpHandler {
    return (request, response) => {
      if (this.#rateLimit?.take() === false) {
        response.writeHead(429, { "content-type": "text/plain; charset=utf-8" }).end("Too Many Requests\n");
        return;
      }
      for (const [name, value] of Object.entries(this.#configuration?.headers ?? {}))
        response.setHeader(name, value);
      this.#admit(request, response, () => handler(request, response));
    };
  }

  #admit(request: IncomingMessage, response: ServerResponse, pass: () => void): void {
    const users = this.#configuration?.users;
    if (users === undefined || users.size === 0) pass();
    else this.#basicAuth?.check(users, request, response, pass);
  }

  async #read(): Promise<WebConfiguration> {
    const { readWebConfiguration } = await import("./web-configuration.ts");
    return readWebConfiguration(this.#path);
  }

  async #take(configuration: WebConfiguration): Promise<void> {
    if (configuration.users.size > 0 && this.#basicAuth === undefined) {
      const { BasicAuth } = await import("./basic-auth.ts");
      const { clock, metrics, log } = this.#site;
      const onFailure = (reason: string): void => log.error(`could not check a password: ${reason}`);
      this.#basicAuth = new BasicAuth({ clock, metrics, onFailure });
    }
    const before = this.#configuration?.rateLimit;
    const now = configuration.rateLimit;
    if (now?.interval !== before?.interval || now?.burst !== before?.burst)
      this.#rateLimit = now === undefined ? undefined : new RateLimit(now, this.#site.clock);
    this.#configuration = configuration;
    this.holder.current = configuration.identity;
  }

  async #reread(): Promise<void> {
    const before = this.#configuration;
    try {
      const configuration = await this.#read();
      if ((configuration.identity === undefined) !== (before?.identity === undefined))
        throw new Error(`${this.#path}: TLS can only be switched on or off by a reload of the server`);
      await this.#take(configuration);
      this.#site.log.info(`web configuration ${this.#path} is in use for new connections`);
      if (String(configuration.files) !== String(before?.files)) await this.follow();
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    this.#site.log.error(
      `could not load web configuration ${messageOf(error)}; the previous one stays in use`,
    );
  }
}
