/**
 * A socket that readers connect to. It belongs to no configuration: configurations with the same address share it, so
 * that readers stay connected over a reload, and the last one to release it closes it.
 */

import { lstatSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import type { Server as TlsServer } from "node:tls";
import { fileFault } from "../../lib/files/file-fault.ts";
import { nodeTls } from "../../lib/files/node-modules.ts";
import { checkKeyPair } from "../../lib/net/key-pair.ts";
import { isWildcardHost } from "../../lib/net/listen-address.ts";
import { messageOf } from "../../lib/text/message-of.ts";
import { type Clock, type CounterSlot, type Logger, SetupError } from "../../plugin/index.ts";
import { FrameStream } from "./frame-stream.ts";
import type { TapTarget } from "./target.ts";

/** Paths of a certificate, of its key, and of the CA for the certificates of readers. */
export interface TapFiles {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | undefined;
}

export interface TapListenerOptions {
  readonly target: TapTarget;
  /** Absolute path of a Unix socket; empty for TCP. */
  readonly path: string;
  readonly files: TapFiles | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Readers that were refused because there were too many. */
  readonly refused: CounterSlot;
}

const MAX_READERS = 32;
/** Milliseconds. */
const HANDSHAKE_TIMEOUT = 5_000;

export class TapListener {
  /** The connected readers. */
  readonly streams: Set<FrameStream> = new Set();
  /** Bound for the bytes that wait for a reader. */
  writeBuffer: number;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #refused: CounterSlot;
  /** Whether a full listener was logged since it last had room. */
  #isFull = false;
  readonly #server: Server | TlsServer;
  #holders = 0;

  private constructor({ target, files, clock, log, refused }: TapListenerOptions) {
    this.writeBuffer = target.writeBuffer;
    this.#clock = clock;
    this.#log = log;
    this.#refused = refused;
    const accept = (socket: Socket): void => this.#accept(socket);
    this.#server =
      files === undefined
        ? createServer(accept)
        : nodeTls().createServer({ ...identityOf(files), handshakeTimeout: HANDSHAKE_TIMEOUT }, accept);
    // Includes connections that are still in their TLS handshake.
    this.#server.maxConnections = 2 * MAX_READERS;
    this.#server.on("drop", () => this.#refuse());
    // The peer does not use TLS, or has no valid certificate.
    this.#server.on("tlsClientError", (error) => log.debug(`reader refused: ${error.message}`));
  }

  /** @throws SetupError */
  static async open(options: TapListenerOptions): Promise<TapListener> {
    const { target, path, log } = options;
    const { host, port } = target;
    const listener = new TapListener(options);
    const server = listener.#server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", (error) => reject(new SetupError(`dnstap: cannot listen: ${error.message}`)));
      server.listen(path === "" ? { port, ...(!isWildcardHost(host) && { host }) } : { path }, resolve);
    });
    server.removeAllListeners("error");
    server.on("error", (error) => log.error(error.message));
    server.unref();
    return listener;
  }

  hold(): void {
    this.#holders++;
  }

  async release(): Promise<void> {
    if (--this.#holders > 0) return;
    this.#server.close();
    await Promise.all(Array.from(this.streams, (stream) => stream.end()));
  }

  /** Uses these certificates for new readers from now on. */
  renew(files: TapFiles): void {
    if ("setSecureContext" in this.#server) this.#server.setSecureContext(identityOf(files));
  }

  #accept(socket: Socket): void {
    if (this.streams.size >= MAX_READERS) {
      socket.destroy();
      this.#refuse();
      return;
    }
    this.#isFull = false;
    const stream = new FrameStream(socket, {
      writeBuffer: () => this.writeBuffer,
      clock: this.#clock,
      onEnd: () => void this.streams.delete(stream),
    });
    this.streams.add(stream);
  }

  #refuse(): void {
    this.#refused.add(1);
    if (this.#isFull) return;
    this.#isFull = true;
    this.#log.warning(`a dnstap reader is refused: ${MAX_READERS} are connected already`);
  }
}

/** @throws SetupError */
export function identityOf({ cert, key, ca }: TapFiles) {
  const identity = {
    cert: read(cert),
    key: read(key),
    ...(ca !== undefined && { ca: read(ca), requestCert: true, rejectUnauthorized: true }),
  };
  try {
    checkKeyPair(identity);
  } catch (error) {
    const reason = messageOf(error);
    throw new SetupError(`tls: ${cert} and ${key} are not a certificate and its key: ${reason}`);
  }
  return identity;
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new SetupError(`tls: error reading ${file}: ${fileFault(error)}`);
  }
}

/** @returns whether there is a socket. @throws SetupError for a file that is not a socket */
export function checkSocket(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  if (!found.isSocket())
    throw new SetupError(`${path} exists and is not a socket: remove it, or choose another path`);
  return true;
}

/** Removes a socket that a crashed process left behind. @throws SetupError for a file that is not a socket */
export function removeSocket(path: string): void {
  if (checkSocket(path)) rmSync(path, { force: true });
}
