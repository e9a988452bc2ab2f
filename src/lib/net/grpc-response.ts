import type { IncomingHttpHeaders, IncomingHttpStatusHeader } from "node:http2";
import { GrpcProblem, GrpcStatus, textOfStatus } from "./grpc-message.ts";

/** The status of one response of gRPC: in the trailers, or in the headers if there is no message. */
export class GrpcResponse {
  /** See {@link GrpcStatus}; `undefined` until it has arrived. */
  status: number | undefined;
  reason = "";

  /** Returns the reason to refuse the response if these headers are not those of a gRPC server. */
  head(headers: IncomingHttpHeaders & IncomingHttpStatusHeader): GrpcProblem | undefined {
    const status = headers[":status"];
    const type = headers["content-type"];
    if (headers["grpc-status"] !== undefined) {
      this.tail(headers);
      return undefined;
    }
    if (status !== 200)
      return new GrpcProblem(
        Number(status) === 401 ? GrpcStatus.UNAUTHENTICATED : GrpcStatus.UNAVAILABLE,
        `unexpected HTTP status code received from server: ${status}`,
      );
    return type === undefined || !/^application\/grpc($|[+;])/.test(type)
      ? new GrpcProblem(
          GrpcStatus.UNKNOWN,
          `unexpected content-type ${JSON.stringify(type ?? "")}: no gRPC server is there`,
        )
      : undefined;
  }

  tail(trailers: IncomingHttpHeaders): void {
    const status = trailers["grpc-status"];
    if (status === undefined) return;
    this.status = /^\d{1,3}$/.test(String(status)) ? Number(status) : GrpcStatus.UNKNOWN;
    this.reason = textOfStatus(trailers["grpc-message"]);
  }
}
