/** Where the records of a zone come from, when it is neither a file nor another name server. */
import type { ZoneListing } from "./zone-listing.ts";

export interface ZoneSource {
  /** For people: `hosted zone Z1D633PJN98FT9`. */
  readonly text: string;
  /** Two sources of the same identity list the same records: a reload takes over what is known. */
  readonly identity: string;
  /**
   * Lists all records. An SOA record with serial 0 is given the time of the last change as its serial.
   * @throws an error whose message is one line for people; {@link ZoneSourceError} where it says when to come back
   */
  list(listing: ZoneListing, signal: AbortSignal): Promise<void>;
  /**
   * Waits until there may be other records than were listed last, or the back end says that there are none yet (false). Without it, the
   * zone is listed again and again.
   * @throws as {@link list}
   */
  changed?(signal: AbortSignal): Promise<boolean>;
}

/** A back end that does not say what it was asked for. */
export class ZoneSourceError extends Error {
  override readonly name: string = "ZoneSourceError";
  /** Milliseconds that the back end asks to be left alone, 0 where it does not say. */
  readonly retryAfter: number;
  /** Whether the same request may work soon: the network, too many requests, a fault of the server. */
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
