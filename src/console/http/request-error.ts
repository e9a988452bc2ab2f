/** A request that cannot be answered; the message says what is wrong with it. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** Of HTTP. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}
