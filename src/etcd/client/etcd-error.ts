import { GrpcStatus } from "../../lib/net/grpc-message.ts";

/** An error of etcd, or of the connection to it. */
export class EtcdError extends Error {
  override readonly name = "EtcdError";
  /** See {@link GrpcStatus}. */
  readonly code: number;
  readonly reason: string;
  /** The URL of the endpoint. */
  readonly endpoint: string;

  constructor(code: number, reason: string, endpoint: string) {
    super(`${endpoint}: ${reason}`);
    this.code = code;
    this.reason = reason;
    this.endpoint = endpoint;
  }

  /** Whether the endpoint was unreachable, so that another may work. */
  get isUnreachable(): boolean {
    return this.code === GrpcStatus.UNAVAILABLE || this.code === GrpcStatus.DEADLINE_EXCEEDED;
  }

  /** Whether the token is missing, expired, or from before a change of users. */
  get wantsLogin(): boolean {
    return (
      this.code === GrpcStatus.UNAUTHENTICATED ||
      /user name is empty|invalid auth token|revision in header is old/.test(this.message)
    );
  }

  /** Whether the requested revision has been compacted. */
  get isCompacted(): boolean {
    return this.code === GrpcStatus.OUT_OF_RANGE;
  }
}
