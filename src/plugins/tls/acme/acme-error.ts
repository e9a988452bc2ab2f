/** Errors in obtaining a certificate. */

/** A CA cannot be reached, or rejects a request. */
export class AcmeError extends Error {
  override readonly name = "AcmeError";
  /** The CA's error type (RFC 8555 section 6.7), without the prefix of its URN; empty without one. */
  readonly type: string;
  /** Milliseconds to wait before the next request, 0 if the CA does not say. */
  readonly retryAfter: number;
  /** Whether a retry soon may help, without counting against a limit. */
  readonly isTransient: boolean;

  constructor(
    message: string,
    {
      type = "",
      retryAfter = 0,
      isTransient = false,
    }: { readonly type?: string; readonly retryAfter?: number; readonly isTransient?: boolean } = {},
  ) {
    super(message);
    this.type = type;
    this.retryAfter = retryAfter;
    this.isTransient = isTransient;
  }
}
