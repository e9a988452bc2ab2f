import { Rcode } from "../../dns/index.ts";
import type { Handler, Next, Outcome, PluginInstance, Query } from "../../plugin/index.ts";
import { NameText } from "./name-text.ts";
import { ReplyChanges } from "./reply-changes.ts";
import { type Applied, NOT_APPLIED, type ReplyChange, type RewriteRule } from "./rule.ts";
import { noteChanges, seen } from "./way-back.ts";

/** All `rewrite` directives of a block, in their order. */
export class Rewriter implements PluginInstance {
  readonly #rules: readonly RewriteRule[];
  readonly #name = new NameText();
  readonly #changes: ReplyChanges;

  constructor(rules: readonly RewriteRule[]) {
    this.#rules = rules;
    this.#changes = new ReplyChanges();
  }

  readonly handle: Handler = (query, next) => {
    let asked = query;
    let changes: ReplyChange[] | undefined;
    this.#name.read(query.bytes, 12, query.nameEnd);
    for (const rule of this.#rules) {
      const applied = rule.apply(asked, this.#name);
      if (applied === NOT_APPLIED) continue;
      if (applied.invalid !== undefined) return this.#invalid(query, rule, applied.invalid);
      if (query.trace !== undefined) note(query, rule, applied, asked);
      // A rule without changes to the reply still counts: it separates the name from the client's.
      if (applied.reply !== undefined || applied.query !== asked) {
        changes ??= [];
        changes.push(applied.reply ?? NO_CHANGE);
      }
      if (applied.query !== asked) {
        asked = applied.query;
        this.#name.read(asked.bytes, 12, asked.nameEnd);
      }
      if (!rule.continues && applied.passedOver !== true) break;
    }
    return this.#ask(query, asked, changes, next);
  };

  #ask(
    query: Query,
    asked: Query,
    changes: readonly ReplyChange[] | undefined,
    next: Next,
  ): Outcome | Promise<Outcome> {
    const outcome = next(asked);
    if (asked === query && changes === undefined) return outcome;
    const all = changes ?? NO_CHANGES;
    if (outcome instanceof Promise) return outcome.then((settled) => this.#back(settled, query, asked, all));
    return this.#back(outcome, query, asked, all);
  }

  #back(
    outcome: Outcome,
    query: Query,
    asked: Query,
    changes: readonly ReplyChange[],
  ): Outcome | Promise<Outcome> {
    const before = query.trace === undefined ? undefined : seen(outcome);
    const changed = this.#changes.apply(outcome, query, asked, changes);
    if (before === undefined) return changed;
    if (!(changed instanceof Promise)) {
      noteChanges(query, asked, before, changed);
      return changed;
    }
    return changed.then((settled) => {
      noteChanges(query, asked, before, settled);
      return settled;
    });
  }

  #invalid(query: Query, rule: RewriteRule, text: string): Outcome {
    query.trace?.note(`rule '${rule.text}' produced an invalid name: '${text}'`, { rule: rule.text });
    return query.fail(Rcode.SERVFAIL, new InvalidNameError(text));
  }
}

const NO_CHANGES: readonly ReplyChange[] = [];
const NO_CHANGE: ReplyChange = Object.freeze({});

/** A rule turned the name of a query into an invalid one: too long, or with an empty label. */
export class InvalidNameError extends Error {
  override readonly name = "InvalidNameError";
  readonly text: string;

  constructor(text: string) {
    super(`invalid name after rewrite: ${text}`);
    this.text = text;
  }
}

function note(query: Query, rule: RewriteRule, applied: Applied, before: Query): void {
  const { query: after } = applied;
  const changes: string[] = [];
  if (!after.name.equals(before.name)) changes.push(`the name ${before.name} becomes ${after.name}`);
  if (applied.note !== undefined) changes.push(applied.note);
  if (after !== before && changes.length === 0)
    changes.push(after.name === before.name ? "EDNS options change" : "the name is now in lower case");
  if (applied.reply !== undefined && after === before) changes.push("its reply will be checked");
  const followed = rule.continues || applied.passedOver === true ? "; the next rule applies as well" : "";
  query.trace?.note(`'${rule.text}' matches: ${changes.join(", ")}${followed}`, { rule: rule.text });
}
