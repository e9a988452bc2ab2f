/** Faults between a client and the API, on demand. */

/** A request as faults and rules of access see it. */
export interface RequestFacts {
  readonly verb: "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "other";
  /** As in paths: `services`; empty where none is meant. */
  readonly resource: string;
  readonly path: string;
  readonly parameters: URLSearchParams;
}

/**
 * - `status`: an answer with this code instead; `body` in place of the usual `Status`.
 * - `answer`: success, with something else as its content.
 * - `hang`: no answer at all.
 * - `cut`: the connection is reset after so many octets of the body.
 * - `end`: the body ends after so many octets, as if it were complete.
 * - `slow`: each piece of the body waits so long.
 */
export type Fault =
  | { readonly kind: "status"; readonly code: number; readonly retryAfter?: number; readonly body?: string }
  | { readonly kind: "answer"; readonly contentType: string; readonly body: string }
  | { readonly kind: "hang" }
  | { readonly kind: "cut"; readonly afterOctets: number }
  | { readonly kind: "end"; readonly afterOctets: number }
  | { readonly kind: "slow"; readonly delayMs: number };

export interface FaultRule {
  readonly fault: Fault;
  /** Default every request. */
  readonly when?: (request: RequestFacts) => boolean;
  /** How many requests it hits. Default 1. */
  readonly times?: number;
}

export class FaultRules {
  #rules: { readonly rule: FaultRule; left: number }[] = [];

  add(rule: FaultRule): void {
    this.#rules.push({ rule, left: rule.times ?? 1 });
  }

  clear(): void {
    this.#rules = [];
  }

  /** How many requests the rules will still hit. */
  get pending(): number {
    return this.#rules.reduce((sum, { left }) => sum + left, 0);
  }

  /** The fault for a request, used up thereby. */
  take(request: RequestFacts): Fault | undefined {
    const found = this.#rules.find(({ rule }) => rule.when?.(request) ?? true);
    if (found === undefined) return undefined;
    found.left--;
    if (found.left <= 0) this.#rules = this.#rules.filter((rule) => rule !== found);
    return found.rule.fault;
  }
}
