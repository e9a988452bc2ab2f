/** Applies the rules to a reply, the last one first. */
import {
  CNAME,
  type Edns,
  type EdnsOption,
  EdnsOptionCode,
  Flag,
  findOption,
  RecordType,
  type ResourceRecord,
} from "../../dns/index.ts";
import { type NameChange, SectionsRespeller } from "../../dns/respell-sections.ts";
import type { WireName } from "../../dns/wire-name.ts";
import type { Failure, Outcome, Query, Reply } from "../../plugin/index.ts";
import { LookupDepthError } from "../../plugin/query/lookup-depth.ts";
import { NoNextPluginError } from "../../plugin/query/outcome.ts";
import type { CnameTarget, ReplyChange } from "./rule.ts";

export class ReplyChanges {
  readonly #respeller = new SectionsRespeller();
  readonly #names = new NamesOfRules();

  /**
   * @param query the query as the plugin received it, whose question the reply gets back @param asked the query after
   * the rules
   */
  apply(
    outcome: Outcome,
    query: Query,
    asked: Query,
    changes: readonly ReplyChange[],
  ): Outcome | Promise<Outcome> {
    if (outcome.kind === "failed") return withFailureRcode(outcome, query, changes);
    if (outcome.kind !== "reply") return outcome;
    setOpt(outcome, query, asked, changes);
    return this.#upTo(changes.length, outcome, query, asked, changes);
  }

  /** Applies the changes before `end`, from the last to the first. */
  #upTo(
    end: number,
    reply: Reply,
    query: Query,
    asked: Query,
    changes: readonly ReplyChange[],
  ): Outcome | Promise<Outcome> {
    let start = end;
    while (start > 0 && changes[start - 1]?.cname === undefined) start--;
    const isLast = start === 0;
    this.#change(reply, isLast ? query : asked, changes, start, end);
    const target = isLast ? undefined : changes[start - 1]?.cname;
    if (target === undefined) return reply;
    const rest = start - 1;
    const followed = this.#follow(reply, target, asked);
    if (followed instanceof Promise)
      return followed.then((other) => this.#onwards(rest, other, query, asked, changes));
    return this.#onwards(rest, followed, query, asked, changes);
  }

  #onwards(
    end: number,
    followed: Reply | Failure,
    query: Query,
    asked: Query,
    changes: readonly ReplyChange[],
  ): Outcome | Promise<Outcome> {
    return followed.kind === "failed" ? followed : this.#upTo(end, followed, query, asked, changes);
  }

  /**
   * Changes rcode, TTLs and names by the rules from `start` to `end`, and turns the result into the reply to
   * `question`.
   */
  #change(reply: Reply, question: Query, changes: readonly ReplyChange[], start: number, end: number): void {
    let changesNames = false;
    let changesTtls = false;
    for (let index = end - 1; index >= start; index--) {
      const change = changes[index];
      if (change?.rcode !== undefined) reply.rcode = change.rcode(reply.rcode);
      changesNames ||= change?.owner !== undefined;
      changesTtls ||= change?.ttl !== undefined;
    }
    if (changesTtls && reply.uniformTtl >= 0) {
      reply.setUniformTtl(ttlBy(changes, start, end, reply.uniformTtl));
      changesTtls = false;
    }
    const isMoved = reply.query.questionOwner !== question.questionOwner;
    if (!changesNames && !changesTtls && !isMoved) return;
    const names = changesNames ? this.#names.of(changes, start, end) : undefined;
    const ttl = changesTtls ? (seconds: number) => ttlBy(changes, start, end, seconds) : undefined;
    // Only for a single rule: the names that other rules made in between are not available here.
    const keepsQuestion = changes.length === 1 && changes[0]?.restoresQuestion === true && isMoved;
    const encoded = this.#respeller.respell(reply.sections, reply.query, question, names, keepsQuestion, ttl);
    reply.replaceEncoded(question, encoded);
    this.#names.clear();
  }

  /** Resolves an alias again if a rule changes its target. */
  #follow(reply: Reply, target: CnameTarget, asked: Query): Reply | Failure | Promise<Reply | Failure> {
    if (!hasAlias(reply)) return reply;
    const { answer } = reply;
    for (const [index, record] of answer.entries()) {
      const to = CNAME.is(record) ? target.newTarget(record.data.target) : undefined;
      if (to === undefined) continue;
      const aliases = [
        ...answer.slice(0, index).filter((earlier) => CNAME.is(earlier)),
        CNAME.create(record.name, record.ttl, { target: to }, record.class),
      ];
      asked.trace?.note(`the alias ${record.name} now points to ${to}`, { target: `${to}` });
      const outcome = asked.lookup(to, asked.type);
      return outcome instanceof Promise
        ? outcome.then((settled) => joined(reply, aliases, settled))
        : joined(reply, aliases, outcome);
    }
    return reply;
  }
}

/** The names of one reply while several rules are applied to it. */
class NamesOfRules implements NameChange {
  #changes: readonly ReplyChange[] = [];
  #start = 0;
  #end = 0;

  of(changes: readonly ReplyChange[], start: number, end: number): this {
    this.#changes = changes;
    this.#start = start;
    this.#end = end;
    return this;
  }

  clear(): void {
    this.#changes = [];
  }

  owner(name: WireName): void {
    for (let index = this.#end - 1; index >= this.#start; index--) this.#changes[index]?.owner?.(name);
  }

  value(name: WireName): void {
    for (let index = this.#end - 1; index >= this.#start; index--) this.#changes[index]?.value?.(name);
  }
}

function ttlBy(changes: readonly ReplyChange[], start: number, end: number, seconds: number): number {
  let ttl = seconds;
  for (let index = end - 1; index >= start; index--) ttl = changes[index]?.ttl?.(ttl) ?? ttl;
  return ttl;
}

/** Turns a failure into a reply if an rcode rule matches it; the server answers other failures. */
function withFailureRcode(
  failure: Extract<Outcome, { kind: "failed" }>,
  query: Query,
  changes: readonly ReplyChange[],
): Outcome {
  let { rcode } = failure;
  for (let index = changes.length - 1; index >= 0; index--) rcode = changes[index]?.rcode?.(rcode) ?? rcode;
  return rcode === failure.rcode ? failure : query.reply({ rcode });
}

/**
 * Sets the OPT of the reply. A client gets no option that it did not send, and no subnet of another client, whatever
 * a rule added to the query. For options that the client sent and a rule without `revert` changed, it gets what
 * CoreDNS makes of the changed query if the reply has no OPT of its own.
 */
function setOpt(reply: Reply, query: Query, asked: Query, changes: readonly ReplyChange[]): void {
  // A client that sent no OPT does not understand one (RFC 6891 section 7), whatever was sent on its behalf.
  if (!query.hasEdns && asked.hasEdns) reply.edns = undefined;
  if (!query.root.hasEdns || !changesOptions(changes)) return;
  const { edns } = asked;
  if (edns === undefined) return;
  const sent = query.root.edns?.options ?? [];
  if (reply.edns !== undefined) {
    if (reply.edns.options.length === 0) return;
    const made = edns.options.filter((option) => !mayAnswer(option, sent));
    const options = reply.edns.options.filter(({ code }) => !made.some((option) => option.code === code));
    reply.edns = { ...reply.edns, options };
    return;
  }
  if (!changes.some(({ showsOptions }) => showsOptions)) return;
  const options = edns.options.filter(
    (option) => query.echoedOptions.has(option.code) && mayAnswer(option, sent),
  );
  reply.edns = { ...edns, options } satisfies Edns;
}

function changesOptions(changes: readonly ReplyChange[]): boolean {
  for (const change of changes) if (change.showsOptions !== undefined) return true;
  return false;
}

/**
 * Whether an option of the changed query, or the answer to it, is meant for the client. The answer for another subnet
 * has to be discarded (RFC 7871 section 7.3).
 */
function mayAnswer({ code, data }: EdnsOption, sent: readonly EdnsOption[]): boolean {
  const own = findOption(sent, code);
  if (own === undefined) return false;
  return code !== EdnsOptionCode.CLIENT_SUBNET || Buffer.compare(own.data, data) === 0;
}

function hasAlias({ sections: encoded }: Reply): boolean {
  for (let index = 0; index < encoded.answerCount; index++)
    if (encoded.typeAt(index) === RecordType.CNAME) return true;
  return false;
}

/**
 * Adds the records of a new target. If it cannot be resolved, the reply stays as it was. If the new target leads back
 * to the rule, there is no answer: the name would have several aliases (RFC 2181 section 10.1).
 */
function joined(reply: Reply, aliases: readonly ResourceRecord[], outcome: Outcome): Reply | Failure {
  if (outcome.kind === "failed" && outcome.error instanceof LookupDepthError) return outcome;
  if (outcome.kind === "failed" && outcome.error instanceof NoNextPluginError) {
    reply.replaceRecords({ answer: aliases });
    return reply;
  }
  if (outcome.kind !== "reply") return reply;
  reply.replaceRecords({ answer: [...aliases, ...outcome.answer] });
  reply.setFlag(Flag.TC, outcome.truncated);
  return reply;
}
