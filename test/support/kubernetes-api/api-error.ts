/** An error of the API: a `Status` with its HTTP code. */

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  readonly reason: string;
  readonly retryAfterSeconds: number | undefined;

  constructor(code: number, reason: string, message: string, retryAfterSeconds?: number) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  toStatus(): Record<string, unknown> {
    const { code, reason, message, retryAfterSeconds } = this;
    const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message,
      reason,
      ...details,
      code,
    };
  }
}

export function notFound(what: string): ApiError {
  return new ApiError(404, "NotFound", `${what} not found`);
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, "BadRequest", message);
}

export function expired(message: string): ApiError {
  return new ApiError(410, "Expired", message);
}
