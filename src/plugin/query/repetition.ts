/**
 * Answers that may be repeated, octet for octet, to queries of the same octets, without running the plugins, because
 * the result would be the same. The server remembers such an answer for a moment. The answering plugin declares the
 * data that the answer depends on; the server checks that each time. The other plugins on the query's path are
 * informed afterwards of the number of repetitions.
 *
 * Between the client and the answering plugin only reviewers ({@link afterwards}) are allowed, and each must have a
 * `PluginInstance.witness`. Any other plugin removes the basis from the reply.
 */
/**
 * The data that an answer depends on. The server reads the object at once, so a plugin may use one object for all
 * answers.
 */
export interface AnswerBasis {
  readonly source: AnswerSource;
  /** `Clock.now()` in milliseconds from which on the plugin would give another answer. */
  readonly until: number;
  /**
   * The answer is valid while `numbers[place]` is `value` and the source's {@link AnswerSource.epoch} stays the same.
   */
  readonly numbers: Int32Array;
  readonly place: number;
  readonly value: number;
}

/** A source of repeatable answers. There are few, and each lives as long as its plugin. */
export interface AnswerSource {
  /** Changes when one or all of the answers given so far become invalid. */
  readonly epoch: number;
  /** Called after repetitions. */
  repeated(repetition: Repetition): void;
  /**
   * Called for an answer that depends on `numbers[place]`, at the first and each eighth repetition in a second, for
   * caches that evict unused entries first.
   */
  given?(place: number): void;
}

/** A plugin between the client and the source. */
export interface AnswerWitness {
  /** Called after repetitions. */
  repeated(repetition: Repetition): void;
  /**
   * An answer is repeated to a query that arrived at this time (`Clock.now()`), and is sent together with others that
   * arrived at the same time.
   */
  answeredAt?(receivedAt: number, listener: { readonly label: string }): void;
  /**
   * Whether an answer may be repeated to a client: for plugins that limit what a client gets. If not, the query goes through the chain.
   * Called for each repetition, so it creates no object.
   * @param names words of the machine; the client's address begins at the word `addressAt`, one for IPv4 and four for IPv6
   * @param kind an `AnswerKind`
   * @param size octets of the reply
   * @internal
   */
  admits?(
    names: Int32Array,
    addressAt: number,
    family: 4 | 6,
    kind: number,
    size: number,
    now: number,
  ): boolean;
}

/** The facts of queries with the same octets. */
export interface RepeatedQuery {
  readonly listener: { readonly label: string };
  readonly view: string;
  readonly client: { readonly family: 4 | 6 };
  readonly overStream: boolean;
  /** The message: valid until the plugin returns, with the name from octet 12 on. */
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly nameEnd: number;
  readonly type: number;
  readonly class: number;
  readonly hasEdns: boolean;
  readonly dnssecOk: boolean;
}

/** The same answer, repeated to queries of the same octets. */
export interface Repetition {
  readonly query: RepeatedQuery;
  readonly rcode: number;
  /** The plugin that answered. */
  readonly plugin: string;
  /** Octets of the reply. */
  readonly size: number;
  readonly times: number;
}
