/** The source of a zone's records that is neither a file nor another name server. */
import type { ZoneListing } from "./zone-listing.ts";

export interface ZoneSource {
  /** For people: `hosted zone Z1D633PJN98FT9`. */
  readonly text: string;
  /** Sources with the same identity list the same records, so a reload takes over the loaded zone. */
  readonly identity: string;
  /**
   * Lists all records. An SOA record with serial 0 gets the time of the last change as its serial.
   * @throws an error with a one-line message for people; {@link ZoneSourceError} if it says when to retry
   */
  list(listing: ZoneListing, signal: AbortSignal): Promise<void>;
  /**
   * Waits for a possible change since the last listing, and returns false if the back end reports no change. Without this
   * method, the zone is listed periodically.
   * @throws as {@link list}
   */
  changed?(signal: AbortSignal): Promise<boolean>;
}

/** A back end did not return the requested data. */
export class ZoneSourceError extends Error {
  override readonly name: string = "ZoneSourceError";
  /** Milliseconds that the back end asks to wait, 0 if it does not say. */
  readonly retryAfter: number;
  /** Whether the same request may soon succeed: an error of the network, too many requests, a server error. */
  readonly isTransient: boolean;

  constructor(
    message: string,
    options: { readonly retryAfter?: number; readonly isTransient?: boolean } = {},
  ) {
    super(message);
    this.retryAfter = options.retryAfter ?? 0;
    this.isTransient = options.isTransient ?? false;
  }
}
