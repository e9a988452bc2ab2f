/**
 * TLS as a layer of a byte stream: the handshake, with the identity in force when the connection begins. A new certificate is used
 * for new connections; open ones continue.
 */
import type { Socket } from "node:net";
import type { SecureContext, Server, TLSSocket } from "node:tls";
import { nodeTls } from "../lib/files/node-modules.ts";
import type { ClientAuthentication, ServerIdentity } from "../lib/files/server-identity.ts";
import { alternativeNames } from "../lib/net/alternative-names.ts";
import type { ByteStream, StreamLayer } from "./byte-stream-server.ts";

export interface TlsLayerOptions {
  readonly identity: () => ServerIdentity | undefined;
  /**
   * Application protocols for ALPN (RFC 7301). A client that only offers other protocols is refused; a client that offers none is
   * not.
   */
  readonly protocols: readonly string[];
  /** Called for each failed handshake. */
  readonly onHandshakeFailed?: (() => void) | undefined;
}

interface Waiting {
  readonly stream: ByteStream;
  readonly proceed: (stream: ByteStream) => void;
}

export class TlsLayer implements StreamLayer {
  readonly #options: TlsLayerOptions;
  /** Handshakes in progress, by the four numbers that identify a TCP connection. */
  readonly #waiting = new Map<string, Waiting>();
  #server: Server | undefined;
  #identity: ServerIdentity | undefined;

  constructor(options: TlsLayerOptions) {
    this.#options = options;
  }

  enter(stream: ByteStream, proceed: (stream: ByteStream) => void): void {
    const { socket } = stream;
    const server = this.#serverOf(this.#options.identity());
    if (server === undefined || socket.destroyed) {
      this.#options.onHandshakeFailed?.();
      socket.destroy();
      return;
    }
    const key = connectionKey(socket);
    this.#waiting.set(key, { stream, proceed });
    socket.once("close", () => {
      if (this.#waiting.delete(key)) this.#options.onHandshakeFailed?.();
    });
    server.emit("connection", socket);
  }

  /** Does not listen: connections are passed to it. */
  #serverOf(identity: ServerIdentity | undefined): Server | undefined {
    if (identity === undefined || identity === this.#identity) return this.#server;
    const { context, keyLog, select } = identity;
    const server = nodeTls().createServer({
      minVersion: "TLSv1.2",
      ...context,
      ALPNProtocols: [...this.#options.protocols],
      requestCert: identity.clientAuthentication !== "nocert",
      // Verified below, since not every client needs a certificate.
      rejectUnauthorized: false,
      ...(select !== undefined && {
        SNICallback: (name: string, done: (error: Error | null, context?: SecureContext) => void) => {
          const selected = select(name.toLowerCase());
          if (selected === undefined) done(new Error("no certificate for this name"));
          else done(null, selected);
        },
      }),
    });
    server.on("secureConnection", (socket) => this.#secured(socket, identity));
    // An error in a handshake only ends that connection.
    server.on("tlsClientError", (_error, socket) => socket.destroy());
    if (keyLog !== undefined) server.on("keylog", (line) => keyLog(line));
    this.#identity = identity;
    this.#server = server;
    return server;
  }

  #secured(socket: TLSSocket, identity: ServerIdentity): void {
    const key = connectionKey(socket);
    const waiting = this.#waiting.get(key);
    if (waiting === undefined || !isWelcome(socket, identity)) {
      socket.destroy();
      return;
    }
    this.#waiting.delete(key);
    socket.on("error", () => socket.destroy());
    waiting.proceed({ ...waiting.stream, socket });
  }
}

function isWelcome(socket: TLSSocket, { clientAuthentication, allowedNames }: ServerIdentity): boolean {
  if (!hasWantedCertificate(socket, clientAuthentication)) return false;
  if (allowedNames === undefined) return true;
  const names = alternativeNames(socket.getPeerX509Certificate()?.subjectAltName ?? "");
  return names.some((name) => allowedNames.includes(name));
}

function hasWantedCertificate(socket: TLSSocket, clientAuthentication: ClientAuthentication): boolean {
  switch (clientAuthentication) {
    case "require":
      return hasCertificate(socket);
    case "verify_if_given":
      return socket.authorized || !hasCertificate(socket);
    case "require_and_verify":
      return socket.authorized;
    default:
      return true;
  }
}

function hasCertificate(socket: TLSSocket): boolean {
  const certificate = socket.getPeerX509Certificate();
  return certificate !== undefined;
}

function connectionKey(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort} ${socket.localAddress} ${socket.localPort}`;
}
