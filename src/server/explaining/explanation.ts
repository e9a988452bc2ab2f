/** Turns a trace and its answer into plain values. */
import { flagNames, recordText } from "../../dns/message-text.ts";
import { className, Flag, RecordClass, rcodeName } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import type {
  ExplainedMessage,
  ExplainedServer,
  Explanation,
  Step,
} from "../../plugin/contract/explanation.ts";
import type { ClientAnswer, ClientQuestion } from "./in-process-client.ts";
import {
  asideTime,
  isLookup,
  type Lookup,
  ownTime,
  type TraceRecorder,
  type Visit,
} from "./trace-recorder.ts";

export interface ExplanationParts {
  readonly question: ClientQuestion;
  readonly listener: string;
  readonly others: readonly string[];
  readonly trace: TraceRecorder;
  readonly server: ExplainedServer | undefined;
  /** The answer, or the milliseconds after which waiting ended. */
  readonly answer: ClientAnswer | { readonly waited: number };
}

export function buildExplanation(parts: ExplanationParts): Explanation {
  const { question, listener, others, trace, server, answer } = parts;
  const [first] = trace.entries;
  const root = first !== undefined && isLookup(first) ? first : undefined;
  const name = question.name.toString();
  const type = recordTypeName(question.type);
  return {
    name,
    type,
    class: className(question.class ?? RecordClass.IN),
    client: question.client ?? "127.0.0.1",
    transport: question.overTcp === true ? "tcp" : "udp",
    flags: [...flagNames(question.flags ?? Flag.RD), ...(question.dnssecOk === true ? ["do"] : [])],
    server,
    listener,
    // Where no block has the name, the others have none, either.
    ...(root?.block !== undefined && others.length > 0 && { otherListeners: others }),
    block: root?.block,
    view: root === undefined || root.view === "" ? undefined : root.view,
    steps: (root?.visits ?? trace.entries).flatMap((entry) => stepsOf(entry, 0, `${name} ${type}`)),
    ...("waited" in answer
      ? unanswered(answer.waited)
      : answered(question, { ...answer, duration: Math.max(0, answer.duration - asideTime(trace.entries)) })),
  };
}

type Ending = Pick<Explanation, "message" | "plugin" | "error" | "milliseconds">;

function unanswered(waited: number): Ending {
  return {
    message: undefined,
    plugin: undefined,
    error: `no answer within ${waited / 1000} s: gave up waiting`,
    milliseconds: waited,
  };
}

function answered(question: ClientQuestion, { outcome, message, size, duration }: ClientAnswer): Ending {
  const explained: ExplainedMessage | undefined = message && {
    rcode: rcodeName(message.rcode),
    flags: flagNames(message.flags),
    answer: message.answer.map(recordText),
    authority: message.authority.map(recordText),
    additional: message.additional.map(recordText),
    edns: message.edns && { udpSize: message.edns.udpSize, dnssecOk: message.edns.dnssecOk },
    size,
    hasAnswer: message.answer.some(({ type }) => type === question.type),
  };
  return {
    message: explained,
    plugin: outcome.kind === "dropped" ? undefined : outcome.plugin,
    error: outcome.kind === "failed" ? outcome.error?.message : undefined,
    milliseconds: toMicroseconds(duration),
  };
}

/** Further digits are noise of the clock. */
function toMicroseconds<T extends number | undefined>(milliseconds: T): T | number {
  return milliseconds === undefined ? milliseconds : Math.round(milliseconds * 1_000) / 1_000;
}

/** @param question the question at the head of the chain */
function stepsOf(entry: Visit | Lookup, depth: number, question: string): Step[] {
  if (isLookup(entry)) {
    if (entry.aside !== undefined) return asideSteps(entry.aside, entry, depth, question);
    const block = entry.block === undefined ? "no server block takes it" : `server block ${entry.block}`;
    const step: Step = {
      depth: depth + 1,
      plugin: "lookup",
      decision: `${entry.question}, ${block}`,
      notes: [],
      milliseconds: undefined,
    };
    return [step, ...entry.visits.flatMap((visit) => stepsOf(visit, depth + 1, entry.question))];
  }
  const { asked = question } = entry;
  const own: Step = {
    depth,
    plugin: entry.plugin,
    decision: decisionOf(entry),
    ...(!sameQuestion(asked, question) && { asked }),
    notes: entry.steps.map(({ note, facts }) => ({ text: note, ...(facts !== undefined && { facts }) })),
    milliseconds: toMicroseconds(ownTime(entry)),
  };
  return [own, ...entry.inner.flatMap((inner) => stepsOf(inner, depth, asked))];
}

/** Plugins that had no part in the answer, below a line that says so. */
function asideSteps(text: string, { visits }: Lookup, depth: number, question: string): Step[] {
  const step: Step = {
    depth: depth + 1,
    plugin: "aside",
    decision: text,
    notes: [],
    milliseconds: undefined,
  };
  return [step, ...visits.flatMap((visit) => stepsOf(visit, depth + 1, question))];
}

function sameQuestion(left: string, right: string): boolean {
  return left.toLowerCase() === right.toLowerCase();
}

function decisionOf({ outcome, leftAt, inner }: Visit): string {
  if (outcome === undefined || leftAt === undefined) return "has not answered";
  const behind = inner.findLast((entry) => !isLookup(entry));
  if (behind === undefined || isLookup(behind)) return inWords(outcome);
  return behind.outcome === outcome ? "passes on" : `passes on, then ${inWords(outcome)}`;
}

/** `reply 3` -> `answers NXDOMAIN`. */
function inWords(outcome: string): string {
  const [kind = "", code = ""] = outcome.split(" ");
  if (kind === "dropped") return "drops the query";
  if (kind === "stream") return "answers with a zone transfer";
  if (kind === "accepts") return "takes the query";
  if (kind === "declines") return "leaves the query to another server block";
  return `${kind === "reply" ? "answers" : "fails with"} ${rcodeName(Number(code))}`;
}
