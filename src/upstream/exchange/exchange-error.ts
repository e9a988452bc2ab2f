/** Why an upstream returned no usable answer, in the words that operators know from the logs of Go programs. */

export type ExchangeFault =
  /** No answer in time. */
  | "timeout"
  /** The connection failed or timed out. */
  | "connect"
  /** The network or the peer ended the connection. */
  | "broken"
  /** The limit of queries in flight to this upstream is reached. */
  | "busy"
  /** The reply is not a DNS message. */
  | "malformed"
  /** The exchange is closed. */
  | "closed"
  /** The transport does not support this query: it was not sent, and the upstream is not at fault. */
  | "unsupported";

export class ExchangeError extends Error {
  override readonly name = "ExchangeError";
  readonly fault: ExchangeFault;
  /** `udp`, `tcp`. */
  readonly protocol: string;
  /** Address and port of the upstream. */
  readonly to: string;

  constructor(fault: ExchangeFault, protocol: string, to: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
    this.protocol = protocol;
    this.to = to;
  }
}

/** `connection refused` for ECONNREFUSED, and so on. */
export function describeSystemError(error: Error): string {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return SYSTEM_ERRORS.get(code) ?? error.message;
}

const SYSTEM_ERRORS: ReadonlyMap<string, string> = new Map([
  ["EACCES", "permission denied"],
  ["EADDRINUSE", "address already in use"],
  ["EADDRNOTAVAIL", "cannot assign requested address"],
  ["EAFNOSUPPORT", "address family not supported by protocol"],
  ["ECONNREFUSED", "connection refused"],
  ["ECONNRESET", "connection reset by peer"],
  ["EHOSTUNREACH", "no route to host"],
  ["EINVAL", "invalid argument"],
  ["EMFILE", "too many open files"],
  ["ENETUNREACH", "network is unreachable"],
  ["ENFILE", "too many open files in system"],
  ["EPERM", "operation not permitted"],
  ["EPIPE", "broken pipe"],
  ["ETIMEDOUT", "connection timed out"],
]);
