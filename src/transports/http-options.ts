/** What listeners of HTTP are told, and what they tell. */

export interface HttpTimeouts {
  /** Milliseconds until a request is whole. */
  readonly read: number;
  /** Milliseconds until the client has taken a response. */
  readonly write: number;
  /** Milliseconds between two requests; `Infinity` for no end. */
  readonly idle: number;
}

/** What clients of HTTP were found at; each may be told to whoever counts. */
export interface HttpObserver {
  /** The connection ended because of what its client sent: broken frames, too many of a kind, too large headers. */
  readonly onFault?: (() => void) | undefined;
  /** A request did not come to its end in time, or a response was not taken in time. */
  readonly onTimeout?: ((what: "request" | "response") => void) | undefined;
  /** The connection was closed because its client left too much unread. */
  readonly onUnread?: (() => void) | undefined;
}
