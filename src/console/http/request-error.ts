/** A request that cannot be answered; the message says what is wrong with it. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  /** Of HTTP. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
