/** gRPC status codes, as far as etcd uses them. */
export const StatusCode = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  PERMISSION_DENIED: 7,
  FAILED_PRECONDITION: 9,
  OUT_OF_RANGE: 11,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/** An error of etcd, or of the connection to it. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  /** See {@link StatusCode}. */
  readonly code: number;
  /** The URL of the endpoint. */
  readonly endpoint: string;

  constructor(code: number, reason: string, endpoint: string) {
    super(`${endpoint}: ${reason}`);
    this.code = code;
    this.endpoint = endpoint;
  }

  /** Whether the endpoint was unreachable, so that another may work. */
  get isUnreachable(): boolean {
    return this.code === StatusCode.UNAVAILABLE || this.code === StatusCode.DEADLINE_EXCEEDED;
  }

  /** Whether the token is missing, expired, or from before a change of users. */
  get wantsLogin(): boolean {
    return (
      this.code === StatusCode.UNAUTHENTICATED ||
      /user name is empty|invalid auth token|revision in header is old/.test(this.message)
    );
  }

  /** Whether the requested revision has been compacted. */
  get isCompacted(): boolean {
    return this.code === StatusCode.OUT_OF_RANGE;
  }
}
