/** Asks two servers the same questions, some at a time, and groups what differs. */
import type { AskedServer, NoReply, ServerReply } from "./asking.ts";
import { differencesOf, type ReplyDifference } from "./differences.ts";
import { listedSentence } from "./listed.ts";
import { type AskedQuestion, questionText } from "./questions.ts";

/** One example of a kind. */
export interface Example {
  readonly question: string;
  readonly lines: readonly string[];
}

export interface DifferenceKind {
  readonly kind: string;
  /** The sentence of docs/compatibility.md, for a difference that it lists. */
  readonly listed: string | undefined;
  questions: number;
  /** How often clients asked them. */
  queries: number;
  readonly examples: Example[];
}

export interface Comparison {
  readonly questions: number;
  readonly queries: number;
  same: number;
  different: number;
  /** Questions with answers that change from query to query at one server: no difference between the servers. */
  changing: number;
  /** Most frequent first. */
  kinds: readonly DifferenceKind[];
}

export interface ComparisonOptions {
  readonly old: AskedServer;
  readonly now: AskedServer;
  readonly strict: boolean;
  readonly concurrency: number;
}

/** A server that answers nothing. */
export class SilentServer extends Error {
  override readonly name = "SilentServer";
}

const MOST_EXAMPLES = 3;
/** Questions in a row without a reply, after which a server counts as gone. */
const PATIENCE = 20;

/** @throws SilentServer */
export async function compareServers(
  questions: readonly AskedQuestion[],
  options: ComparisonOptions,
): Promise<Comparison> {
  const run = new Run(questions, options);
  // A server that is not there shows with the first questions, before the time-outs of all others.
  await run.some(Math.min(questions.length, PATIENCE));
  await run.some(questions.length);
  return run.result();
}

class Run {
  readonly #questions: readonly AskedQuestion[];
  readonly #options: ComparisonOptions;
  readonly #kinds = new Map<string, DifferenceKind>();
  readonly #silent = { OLD: 0, NEW: 0 };
  readonly #faults = { OLD: "", NEW: "" };
  readonly #counts = { same: 0, different: 0, changing: 0 };
  #next = 0;

  constructor(questions: readonly AskedQuestion[], options: ComparisonOptions) {
    this.#questions = questions;
    this.#options = options;
  }

  /** Compares the questions up to `end`. */
  async some(end: number): Promise<void> {
    const worker = async (): Promise<void> => {
      while (this.#next < end) {
        const question = this.#questions[this.#next++];
        if (question !== undefined) await this.#compare(question);
      }
    };
    await Promise.all(Array.from({ length: this.#options.concurrency }, worker));
    if (end < this.#questions.length) return;
    // Fewer questions than the patience: no reply at all is as clear.
    for (const side of ["OLD", "NEW"] as const)
      if (this.#silent[side] === this.#questions.length) throw this.#gone(side);
  }

  result(): Comparison {
    const kinds = [...this.#kinds.values()].sort((a, b) => b.questions - a.questions);
    const queries = this.#questions.reduce((sum, { times }) => sum + times, 0);
    return { questions: this.#questions.length, queries, ...this.#counts, kinds };
  }

  async #compare(question: AskedQuestion): Promise<void> {
    const { strict } = this.#options;
    const [old, now] = await this.#askBoth(question);
    this.#watch("OLD", old);
    this.#watch("NEW", now);
    const differences = differencesOf(old, now, strict);
    if (differences.length === 0) {
      this.#counts.same++;
      return;
    }
    // Answers of the Internet change from query to query: only what differs twice, in the same way, is a difference.
    const [oldAgain, nowAgain] = await this.#askBoth(question);
    const again = new Set(differencesOf(oldAgain, nowAgain, strict).map(({ kind }) => kind));
    const lasting = differences.filter(({ kind }) => again.has(kind));
    const isSteady = isSame(old, oldAgain) && isSame(now, nowAgain);
    if (lasting.length === 0 || !isSteady) {
      this.#counts.changing++;
      return;
    }
    this.#counts.different++;
    const listed = "fault" in old || "fault" in now ? undefined : listedSentence(question, old, now);
    for (const difference of lasting) this.#add(question, difference, listed);
  }

  #askBoth(question: AskedQuestion): Promise<[ServerReply | NoReply, ServerReply | NoReply]> {
    const { old, now } = this.#options;
    return Promise.all([old.ask(question), now.ask(question)]);
  }

  #watch(side: "OLD" | "NEW", reply: ServerReply | NoReply): void {
    this.#silent[side] = "fault" in reply ? this.#silent[side] + 1 : 0;
    if ("fault" in reply) this.#faults[side] = reply.fault;
    if (this.#silent[side] >= PATIENCE) throw this.#gone(side);
  }

  #gone(side: "OLD" | "NEW"): SilentServer {
    const { old, now } = this.#options;
    const { text } = (side === "OLD" ? old : now).address;
    return new SilentServer(`${side} (${text}) does not answer: ${this.#faults[side]}`);
  }

  #add(question: AskedQuestion, { kind, lines }: ReplyDifference, listed: string | undefined): void {
    const key = `${kind}\n${listed ?? ""}`;
    const known = this.#kinds.get(key) ?? { kind, listed, questions: 0, queries: 0, examples: [] };
    this.#kinds.set(key, known);
    known.questions++;
    known.queries += question.times;
    if (known.examples.length < MOST_EXAMPLES)
      known.examples.push({ question: questionText(question), lines });
  }
}

/** Whether a server answered twice alike. */
function isSame(first: ServerReply | NoReply, second: ServerReply | NoReply): boolean {
  if ("fault" in first || "fault" in second) return "fault" in first && "fault" in second;
  return differencesOf(first, second, false).length === 0;
}
