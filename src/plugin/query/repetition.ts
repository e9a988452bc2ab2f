/**
 * Answers that may be given again, octet for octet, to queries of the same octets, without asking the plugins, as these would say the same. The server
 * remembers such an answer for a moment. The plugin that answers says what the answer rests on; the server looks at that each time; and the plugins
 * that the query would have passed hear of it afterwards: how often, once a second.
 *
 * Only plugins that look at what comes back ({@link afterwards}) and say by `PluginInstance.witness` that they can hear of it later may stand between the
 * client and the one that answers. Through any other plugin, a reply loses its basis.
 */
/** What an answer rests on. The server reads it at once, so that a plugin may use one object for all. */
export interface AnswerBasis {
  readonly source: AnswerSource;
  /** `Clock.now()` from which on the plugin would give another answer, milliseconds. */
  readonly until: number;
  /** The answer holds for as long as `numbers[place]` is `value`, and the source's {@link AnswerSource.epoch} stays. */
  readonly numbers: Int32Array;
  readonly place: number;
  readonly value: number;
}

/** Where answers come from that may be given again. There are few, and each is there for as long as its plugin. */
export interface AnswerSource {
  /** Becomes another number when none of the answers given so far holds any more, or not all of them. */
  readonly epoch: number;
  /** Hears that answers were given again. */
  repeated(repetition: Repetition): void;
  /** Told of an answer that rests on `numbers[place]`, the first and then each eighth time in a second, where what nobody asks for has to go first. */
  given?(place: number): void;
}

/** A plugin between the client and the source. */
export interface AnswerWitness {
  /** Hears that answers were given again. */
  repeated(repetition: Repetition): void;
  /** An answer is given again to a query that arrived then (`Clock.now()`), and leaves with the others that came at the same time. */
  answeredAt?(receivedAt: number, listener: { readonly label: string }): void;
}

/** What is known of queries of the same octets. */
export interface RepeatedQuery {
  readonly listener: { readonly label: string };
  readonly view: string;
  readonly client: { readonly family: 4 | 6 };
  readonly overStream: boolean;
  /** The message: it holds until the plugin returns, the name from octet 12 on. */
  readonly bytes: Uint8Array;
  readonly length: number;
  readonly nameEnd: number;
  readonly type: number;
  readonly class: number;
  readonly hasEdns: boolean;
  readonly dnssecOk: boolean;
}

/** The same answer, given again to queries of the same octets. */
export interface Repetition {
  readonly query: RepeatedQuery;
  readonly rcode: number;
  /** Who answered. */
  readonly plugin: string;
  /** Octets of the reply. */
  readonly size: number;
  readonly times: number;
}
