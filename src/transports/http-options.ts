/** Options and events of HTTP listeners. */

export interface HttpTimeouts {
  /** Milliseconds until a request is whole. */
  readonly read: number;
  /** Milliseconds until the client has read a response. */
  readonly write: number;
  /** Milliseconds between two requests; `Infinity` for no limit. */
  readonly idle: number;
}

/** Faults of HTTP clients; each callback is optional. */
export interface HttpObserver {
  /** The connection was closed because of its client's data: broken frames, too many of a kind, too large headers. */
  readonly onFault?: (() => void) | undefined;
  /** A request was not complete in time, or a response was not read in time. */
  readonly onTimeout?: ((what: "request" | "response") => void) | undefined;
  /** The connection was closed because its client left too much unread. */
  readonly onUnread?: (() => void) | undefined;
}
