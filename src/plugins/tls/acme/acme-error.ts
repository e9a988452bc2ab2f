/** Why there is no certificate yet. */

/** A certificate authority cannot be reached, or says no. */
export class AcmeError extends Error {
  override readonly name = "AcmeError";
  /** What the authority calls it (RFC 8555 section 6.7), without the prefix of its URN; empty where it said nothing. */
  readonly type: string;
  /** Milliseconds that the authority wants to be left alone for, 0 where it does not say. */
  readonly retryAfter: number;
  /** Whether asking again soon may help, and costs nobody anything. */
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
