/** The certificate files of a server: read at the start, checked for changes, and used when they are valid. */

import type { WriteStream } from "node:fs";
import { open } from "node:fs/promises";
import type { SecureContextOptions } from "node:tls";
import { formatServerKey } from "../../corefile/server-key.ts";
import { fileFault } from "../../lib/files/file-fault.ts";
import { FileWatch } from "../../lib/files/file-watch.ts";
import { nodeCrypto } from "../../lib/files/node-modules.ts";
import type { ClientAuthentication } from "../../lib/files/server-identity.ts";
import { checkKeyPair } from "../../lib/net/key-pair.ts";
import {
  type CounterSlot,
  type GaugeSlot,
  type PluginFault,
  type PluginInstance,
  SetupError,
  type Site,
  type Timer,
} from "../../plugin/index.ts";
import type { DiscoveryConfig } from "./discovery.ts";

export interface TlsConfig {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | undefined;
  readonly client_auth: ClientAuthentication;
  readonly keylog: string | undefined;
  readonly discovery: DiscoveryConfig | undefined;
}

/** Milliseconds between two checks of the files. */
const LOOK_INTERVAL = 2_000;
/** Milliseconds between two log lines about an expired certificate. */
const REMINDER_INTERVAL = 3_600_000;

export class Certificates implements PluginInstance {
  readonly #site: Site;
  readonly #config: TlsConfig;
  readonly #paths: { readonly cert: string; readonly key: string; readonly ca: string | undefined };
  readonly #contents = new Map<string, Uint8Array>();
  readonly #expiry: GaugeSlot;
  readonly #failures: CounterSlot;
  readonly #watch: FileWatch;
  #keyLog: WriteStream | undefined;
  /** Why the files cannot be read, during the first read. */
  #fault: unknown;
  #isRunning = false;
  /** When the certificate in force expires, in milliseconds since 1970. */
  #expires = Number.POSITIVE_INFINITY;
  #reminder: Timer | undefined;

  constructor(config: TlsConfig, site: Site) {
    this.#site = site;
    this.#config = config;
    const { cert, key, ca } = config;
    this.#paths = {
      cert: site.resolvePath(cert),
      key: site.resolvePath(key),
      ca: ca === undefined ? undefined : site.resolvePath(ca),
    };
    this.#expiry = site.metrics
      .gauge({
        name: "portolan_tls_certificate_expiry_timestamp_seconds",
        help: "Time at which the certificate in force expires, in seconds since 1970.",
        labels: ["certificate"],
      })
      .slot(this.#paths.cert);
    this.#failures = site.metrics
      .counter({
        name: "portolan_tls_certificate_load_failures_total",
        help: "Changes of certificate files that could not be applied; the previous certificate stays in use.",
        labels: ["certificate"],
      })
      .slot(this.#paths.cert);
    this.#watch = new FileWatch({
      paths: [...new Set(Object.values(this.#paths).filter((path) => path !== undefined))],
      intervalMs: LOOK_INTERVAL,
      clock: site.clock,
      onChange: (changes) => {
        for (const { path, content } of changes) this.#contents.set(path, content);
        this.#takeOver();
      },
      onError: (error, path) => this.#report(ofFile(error, path)),
    });
  }

  async examine(): Promise<void> {
    await this.#read();
    this.#watch.stop();
    try {
      this.#expires = this.#check(this.#context());
    } catch (error) {
      throw this.#refused(error);
    }
    if (this.#hasExpired) this.#site.log.warning(this.#expiryText);
  }

  async #read(): Promise<void> {
    const contents = await this.#watch.start();
    for (const [path, content] of contents) this.#contents.set(path, content);
    if (this.#fault !== undefined) throw this.#refused(this.#fault);
  }

  async start(): Promise<void> {
    await this.#read();
    const { keylog } = this.#config;
    if (keylog !== undefined) {
      const path = this.#site.resolvePath(keylog);
      this.#keyLog = (await open(path, "a", 0o600)).createWriteStream();
      this.#keyLog.on("error", (error) => this.#site.log.error(`cannot write to keylog: ${error.message}`));
      this.#site.log.warning(
        `TLS secrets are written to ${path}: anyone who can read it can decrypt all queries`,
      );
    }
    try {
      this.#load();
    } catch (error) {
      throw this.#refused(error);
    }
    this.#isRunning = true;
    // Every thread has an instance, and the leader logs for all.
    if (this.#site.feed.role === "follower") return;
    this.#remind();
    this.#reminder = this.#site.clock.every(REMINDER_INTERVAL, () => this.#remind());
  }

  /** Most clients reject an expired certificate, so its block is not ready, also if it serves plain DNS as well. */
  ready(): boolean {
    return !this.#hasExpired;
  }

  describeState(): string[] {
    const keys = this.#site.block.keys.map(formatServerKey).join(" ");
    return this.#hasExpired ? [`${keys}: ${this.#expiryText}`] : [];
  }

  faults(): PluginFault[] {
    return this.#hasExpired ? [{ subject: "certificate", reason: this.#expiryText }] : [];
  }

  stop(): void {
    this.#reminder?.cancel();
    this.#watch.stop();
    this.#keyLog?.end();
  }

  get #hasExpired(): boolean {
    return this.#expires < this.#site.clock.wallTime();
  }

  get #expiryText(): string {
    const { cert } = this.#paths;
    return `certificate ${cert} expired on ${new Date(this.#expires).toUTCString()}: clients that verify it refuse to connect`;
  }

  #remind(): void {
    if (this.#hasExpired)
      this.#site.log.error(`${this.#expiryText}; renew the file, and it is used without a restart`);
  }

  #takeOver(): void {
    try {
      this.#load();
      this.#site.log.info(`certificate ${this.#paths.cert} is in use for new connections`);
    } catch (error) {
      this.#report(error);
    }
  }

  /** @throws Error for an invalid certificate or key, or if they do not match */
  #load(): void {
    const holder = this.#site.block.settings.identity;
    const context = this.#context();
    const expires = this.#check(context);
    // An expired certificate is better than none at the start, but does not replace another.
    if (this.#isRunning && expires < this.#site.clock.wallTime())
      throw new Error(`it expired on ${new Date(expires).toUTCString()}`);
    this.#expires = expires;
    if (holder === undefined) return;
    const stream = this.#keyLog;
    holder.current = {
      context,
      clientAuthentication: this.#config.client_auth,
      keyLog: stream === undefined ? undefined : (line) => void stream.write(line),
    };
    this.#expiry.set(expires / 1000);
  }

  #context(): SecureContextOptions {
    const { cert, key, ca } = this.#paths;
    const authority = ca === undefined ? undefined : this.#content(ca);
    return {
      cert: this.#content(cert),
      key: this.#content(key),
      ...(authority !== undefined && { ca: authority }),
    };
  }

  #content(path: string): Buffer {
    return Buffer.from(this.#contents.get(path) ?? []);
  }

  /** @returns when the certificate expires, in milliseconds since 1970 */
  #check(context: SecureContextOptions): number {
    checkKeyPair(context);
    return Date.parse(new (nodeCrypto().X509Certificate)(context.cert as Buffer).validTo);
  }

  #report(error: unknown): void {
    if (!this.#isRunning) {
      this.#fault ??= error;
      return;
    }
    this.#failures.increment();
    this.#site.log.error(`${this.#refused(error).message}; the previous certificate stays in use`);
  }

  #refused(error: unknown): SetupError {
    const { cert, key } = this.#paths;
    return new SetupError(`could not load TLS certificate ${cert} with key ${key}: ${fileFault(error)}`);
  }
}

/** Adds the path of the faulty file to an error. */
function ofFile(error: unknown, path: string | undefined): unknown {
  const reason = fileFault(error);
  return path === undefined || reason.includes(path) ? error : new Error(`${path}: ${reason}`);
}
