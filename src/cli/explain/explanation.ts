/** The way of one query as plain values: what `explain` prints as text and as JSON. */
import { rcodeName } from "../../dns/numbers.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import type { OfflineAnswer, OfflineQuestion } from "../../server/offline-server.ts";
import {
  isLookup,
  type Lookup,
  ownTime,
  type TraceRecorder,
  type Visit,
} from "../../server/trace-recorder.ts";
import { flagNames, recordText } from "../message-text.ts";

export interface Explanation {
  readonly name: string;
  readonly type: string;
  readonly client: string;
  readonly transport: "udp" | "tcp";
  /** `dns://:53`. */
  readonly listener: string;
  /** Keys and place of the server block; `undefined` when none takes the question. */
  readonly block: string | undefined;
  readonly steps: readonly Step[];
  /** `undefined` when nothing is sent. */
  readonly message: ExplainedMessage | undefined;
  /** The plugin that answered or failed. */
  readonly plugin: string | undefined;
  /** Why it failed. */
  readonly error: string | undefined;
  readonly milliseconds: number;
}

export interface ExplainedMessage {
  readonly rcode: string;
  readonly flags: readonly string[];
  readonly answer: readonly string[];
  readonly authority: readonly string[];
  readonly additional: readonly string[];
  /** Whether there is a record of the type asked. */
  readonly hasAnswer: boolean;
}

/** One plugin, or a lookup that a plugin made through the server. */
export interface Step {
  /** How many lookups led here. */
  readonly depth: number;
  readonly plugin: string;
  /** What it did, in words. */
  readonly decision: string;
  readonly notes: readonly { readonly text: string; readonly facts?: Readonly<Record<string, unknown>> }[];
  /** Spent in the plugin itself; `undefined` when that is not known. */
  readonly milliseconds: number | undefined;
}

export function explain(
  question: OfflineQuestion,
  listener: string,
  answer: OfflineAnswer,
  trace: TraceRecorder,
): Explanation {
  const { outcome, message, duration } = answer;
  const [first] = trace.entries;
  const root = first !== undefined && isLookup(first) ? first : undefined;
  return {
    name: question.name.toString(),
    type: recordTypeName(question.type),
    client: question.client ?? "127.0.0.1",
    transport: question.overTcp === true ? "tcp" : "udp",
    listener,
    block: root?.block,
    steps: (root?.visits ?? trace.entries).flatMap((entry) => stepsOf(entry, 0)),
    message: message && {
      rcode: rcodeName(message.rcode),
      flags: flagNames(message.flags),
      answer: message.answer.map(recordText),
      authority: message.authority.map(recordText),
      additional: message.additional.map(recordText),
      hasAnswer: message.answer.some(({ type }) => type === question.type),
    },
    plugin: outcome.kind === "dropped" ? undefined : outcome.plugin,
    error: outcome.kind === "failed" ? outcome.error?.message : undefined,
    milliseconds: duration,
  };
}

function stepsOf(entry: Visit | Lookup, depth: number): Step[] {
  if (isLookup(entry)) {
    const block = entry.block === undefined ? "no server block takes it" : `server block ${entry.block}`;
    const step: Step = {
      depth: depth + 1,
      plugin: "lookup",
      decision: `${entry.question}, ${block}`,
      notes: [],
      milliseconds: undefined,
    };
    return [step, ...entry.visits.flatMap((visit) => stepsOf(visit, depth + 1))];
  }
  const own: Step = {
    depth,
    plugin: entry.plugin,
    decision: decisionOf(entry),
    notes: entry.steps.map(({ note, facts }) => ({ text: note, ...(facts !== undefined && { facts }) })),
    milliseconds: ownTime(entry),
  };
  return [own, ...entry.inner.flatMap((inner) => stepsOf(inner, depth))];
}

function decisionOf({ outcome, inner }: Visit): string {
  if (outcome === undefined) return "broke down";
  const behind = inner.findLast((entry) => !isLookup(entry));
  if (behind === undefined || isLookup(behind)) return inWords(outcome);
  return behind.outcome === outcome ? "passes on" : `passes on, then ${inWords(outcome)}`;
}

/** `reply 3` -> `answers NXDOMAIN`. */
function inWords(outcome: string): string {
  const [kind = "", code = ""] = outcome.split(" ");
  if (kind === "dropped") return "drops the query";
  return `${kind === "reply" ? "answers" : "fails with"} ${rcodeName(Number(code))}`;
}
