/** The interface of a rule of `rewrite`. */
import type { Name } from "../../dns/index.ts";
import type { WireName } from "../../dns/wire-name.ts";
import type { Query } from "../../plugin/index.ts";
import type { NameText } from "./name-text.ts";

/** One rule, as it stands on a line or in a block. */
export interface RewriteRule {
  /** Whether the rules after this one apply as well if it applied. */
  readonly continues: boolean;
  /** The rule as written, for explain notes. */
  readonly text: string;
  /**
   * Changes a query, or returns changes to its reply. @param asked the query after the previous rules @param name the
   * name of `asked` @returns {@link NOT_APPLIED} if the rule's condition is not met
   */
  apply(asked: Query, name: NameText): Applied | typeof NOT_APPLIED;
}

export const NOT_APPLIED = undefined;

export interface Applied {
  /** The query for the next rules and plugins; the same object if only the reply changes. */
  readonly query: Query;
  /** Changes to the reply; rules that applied later come first. */
  readonly reply?: ReplyChange | undefined;
  /** The change in readable form: `example.com. -> example.net.`. */
  readonly note?: string;
  /** The rule had nothing to change: the next rule applies, even without `continue`. */
  readonly passedOver?: boolean;
  /** The invalid name that the rule made. */
  readonly invalid?: string;
}

/** Changes of a rule to replies. All members are optional. */
export interface ReplyChange {
  /**
   * Whether the name of the changed query is mapped back to the client's: then records with that owner need no check.
   */
  readonly restoresQuestion?: boolean;
  /** Changes owner names, and names in records, in place. */
  owner?(name: WireName): void;
  value?(name: WireName): void;
  /** Seconds. */
  ttl?(seconds: number): number;
  rcode?(rcode: number): number;
  readonly cname?: CnameTarget;
  /** EDNS options to show the client if the reply has no OPT of its own. */
  readonly showsOptions?: boolean;
}

export interface CnameTarget {
  /** The name that replaces a target, `undefined` if the rule does not match it. */
  newTarget(target: Name): Name | undefined;
}
