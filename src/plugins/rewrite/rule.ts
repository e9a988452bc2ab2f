/** What a rule of `rewrite` is. */
import type { Name } from "../../dns/index.ts";
import type { WireName } from "../../dns/wire-name.ts";
import type { Query } from "../../plugin/index.ts";
import type { NameText } from "./name-text.ts";

/** One rule, as it stands on a line or in a block. */
export interface RewriteRule {
  /** The rules behind it are asked as well when it applied. */
  readonly continues: boolean;
  /** As it is written, for people. */
  readonly text: string;
  /**
   * Changes a query, or says what is to be done to its reply.
   * @param asked what the rules in front of this one made of the query
   * @param name the name of `asked`
   * @returns {@link NOT_APPLIED} where its condition is not met
   */
  apply(asked: Query, name: NameText): Applied | typeof NOT_APPLIED;
}

export const NOT_APPLIED = undefined;

export interface Applied {
  /** The query for the next rules and plugins; the same one where only the reply is changed. */
  readonly query: Query;
  /** What is done to the reply on its way back; rules that applied later come first. */
  readonly reply?: ReplyChange | undefined;
  /** The change as people read it: `example.com. -> example.net.`. */
  readonly note?: string;
  /** It had nothing to change: the next rule is asked, whatever it says. */
  readonly passedOver?: boolean;
  /** The rule made a name that is none. */
  readonly invalid?: string;
}

/** What a rule does to replies. All members are optional. */
export interface ReplyChange {
  /** The name of the changed query becomes that of the query as it came: its records need no look at their owners. */
  readonly restoresQuestion?: boolean;
  /** Changes names of owners, and those that records point to, in place. */
  owner?(name: WireName): void;
  value?(name: WireName): void;
  /** Seconds. */
  ttl?(seconds: number): number;
  rcode?(rcode: number): number;
  readonly cname?: CnameTarget;
  /** EDNS options that the client is shown, where the reply has no OPT of its own. */
  readonly showsOptions?: boolean;
}

export interface CnameTarget {
  /** The name that takes the place of a target, `undefined` where the rule does not match it. */
  newTarget(target: Name): Name | undefined;
}
