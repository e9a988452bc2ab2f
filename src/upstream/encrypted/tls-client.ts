/** TLS to upstreams: trusted authorities, client certificate, session resumption. The server's certificate is always verified. */
import { X509Certificate } from "node:crypto";
import { isIP, type Socket } from "node:net";
import {
  checkServerIdentity,
  connect,
  createSecureContext,
  getCACertificates,
  type SecureContext,
  type SecureVersion,
  type TLSSocket,
} from "node:tls";
import { checkPem } from "../../lib/net/key-pair.ts";
import type { PeerAddress, UpstreamAddress } from "../config/address.ts";
import type { StreamDialler } from "../tcp/tcp-connection.ts";
import { QueryPadder } from "./query-padding.ts";
import { describeTlsError, NoProtocolError, wrongCertificate } from "./tls-words.ts";

/** PEM. Without authorities, the system's are trusted; without certificate and key, none is sent. */
export interface TlsMaterial {
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
  /** Trusted in place of the system's authorities. */
  readonly authorities?: string | undefined;
}

/**
 * The context shared by all upstreams of one configuration.
 * @throws Error with a message for the operator
 */
export function clientContext(
  { certificate, key, authorities }: TlsMaterial,
  minVersion: SecureVersion = "TLSv1.2",
): SecureContext {
  const ca = authorities === undefined ? systemAuthorities() : certificatesIn(authorities);
  if (authorities !== undefined && ca?.length === 0) throw new Error("could not read root certs");
  try {
    if (certificate !== undefined || key !== undefined) checkPem(certificate ?? "", key ?? "");
    return createSecureContext({
      minVersion,
      ...(ca !== undefined && { ca: [...ca] }),
      ...(certificate !== undefined && { cert: certificate }),
      ...(key !== undefined && { key }),
    });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const reason = code.includes("KEY_VALUES_MISMATCH")
      ? "tls: private key does not match public key"
      : error instanceof Error
        ? error.message
        : String(error);
    throw new Error(`could not load TLS cert: ${reason}`, { cause: error });
  }
}

/** PEM of the authorities that servers' certificates are verified against. */
export function trustedAuthorities({ authorities }: TlsMaterial): string {
  const found = authorities === undefined ? systemAuthorities() : certificatesIn(authorities);
  return (found ?? getCACertificates("default")).join("\n");
}

/** The system's authorities, as in Go programs; Node's own if the system has none. */
function systemAuthorities(): readonly string[] | undefined {
  const found = getCACertificates("system");
  return found.length === 0 ? undefined : found;
}

function certificatesIn(text: string): readonly string[] {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  for (const block of blocks) {
    try {
      void new X509Certificate(block);
    } catch (error) {
      throw new Error("could not read root certs", { cause: error });
    }
  }
  return blocks;
}

export interface TlsClientOptions {
  readonly context: SecureContext;
  /** The name that the certificate must match, sent to the server as SNI; the address if absent. */
  readonly serverName: string | undefined;
  /** Protocols to negotiate by ALPN; none for DNS over TLS. */
  readonly protocols?: readonly string[];
  /** Refuses a server that agrees on none of {@link protocols}. */
  readonly mustAgree?: boolean;
}

/** Opens TLS connections to one upstream. */
export class TlsClient {
  readonly #options: TlsClientOptions;
  /** Of the last connection with a valid certificate. */
  #session: Buffer | undefined;

  constructor(options: TlsClientOptions) {
    this.#options = options;
  }

  connect(remote: PeerAddress, sourceAddress: string | undefined): TLSSocket {
    const { context, serverName, protocols, mustAgree } = this.#options;
    const wanted = serverName ?? remote.host;
    const socket = connect({
      ...(remote.path === undefined ? { host: remote.host, port: remote.port } : { path: remote.path }),
      secureContext: context,
      ...(serverName !== undefined && isIP(serverName) === 0 && { servername: serverName }),
      ...(sourceAddress !== undefined && { localAddress: sourceAddress }),
      ...(protocols !== undefined && { ALPNProtocols: [...protocols] }),
      ...(this.#session !== undefined && { session: this.#session }),
      checkServerIdentity: (_host, certificate) =>
        // Names in the subject do not count (RFC 9525 section 2).
        certificate.subjectaltname === undefined || checkServerIdentity(wanted, certificate) !== undefined
          ? wrongCertificate(wanted, certificate.subjectaltname)
          : undefined,
    });
    socket.setNoDelay(true);
    if (mustAgree === true) {
      socket.once("secureConnect", () => {
        if (typeof socket.alpnProtocol !== "string") socket.destroy(new NoProtocolError());
      });
    }
    socket.on("session", (session) => {
      this.#session = session;
    });
    socket.once("error", () => {
      this.#session = undefined;
    });
    return socket;
  }
}

/** DNS over TLS (RFC 7858) for {@link TcpExchange}. */
export class TlsDialler implements StreamDialler {
  readonly protocol = "tcp-tls";
  readonly readyEvent = "secureConnect";
  readonly #client: TlsClient;
  readonly #padder = new QueryPadder();

  constructor(client: TlsClient) {
    this.#client = client;
  }

  dial(remote: UpstreamAddress, sourceAddress: string | undefined): Socket {
    return this.#client.connect(remote, sourceAddress);
  }

  describe(error: Error): string | undefined {
    return describeTlsError(error);
  }

  outgoing(bytes: Uint8Array, length: number, questionEnd: number): Uint8Array {
    return this.#padder.pad(bytes, length, questionEnd);
  }
}
