/** Puts one query through the chains in force and reports its path. */
import { Name, NameError } from "../../dns/name.ts";
import { Flag } from "../../dns/numbers.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { Clock, Timer } from "../../lib/time/clock.ts";
import {
  ExplainError,
  type ExplainedServer,
  type ExplainQuestion,
  type Explanation,
  type QueryFlag,
} from "../../plugin/contract/explanation.ts";
import { buildExplanation } from "./explanation.ts";
import type { ClientAnswer, ClientQuestion, InProcessClient } from "./in-process-client.ts";
import { TraceRecorder } from "./trace-recorder.ts";

export interface ExplainOptions {
  readonly clock: Clock;
  /** The running server: the query then leaves no mark in it. */
  readonly server?: ExplainedServer;
  /** Milliseconds after which the path so far is reported; without it the call waits for an answer. */
  readonly timeout?: number;
}

/** @throws ExplainError */
export async function explainWith(
  client: InProcessClient,
  question: ExplainQuestion,
  options: ExplainOptions,
): Promise<Explanation> {
  const { clock, server, timeout } = options;
  const asked = clientQuestion(question);
  const { listener, others } = chooseListener(client, question.listener, asked);
  const trace = new TraceRecorder(clock, server !== undefined);
  const deadline = timeout === undefined ? Number.POSITIVE_INFINITY : clock.now() + timeout;
  const answer = await within(client.ask(listener, asked, trace, deadline), timeout, clock);
  return buildExplanation({ question: asked, listener, others, trace, server, answer });
}

function chooseListener(
  client: InProcessClient,
  wanted: string | undefined,
  question: ClientQuestion,
): { readonly listener: string; readonly others: readonly string[] } {
  const { listeners } = client;
  if (wanted !== undefined && !listeners.includes(wanted)) {
    throw new ExplainError(
      `-listener ${wanted}: this Corefile listens at ${listeners.join(", ") || "no address"}`,
    );
  }
  const serving = client.listenersFor(question);
  const listener = wanted ?? serving[0];
  if (listener === undefined) throw new ExplainError("this Corefile listens at no address");
  return { listener, others: serving.filter((each) => each !== listener) };
}

function clientQuestion(question: ExplainQuestion): ClientQuestion {
  const { name, type, class: queryClass, client, transport, flags } = question;
  if (client !== undefined && parseIpAddress(client) === undefined)
    throw new ExplainError(`${client} is not an IP address`);
  return {
    name: parseName(name),
    type,
    overTcp: transport === "tcp",
    ...(queryClass !== undefined && { class: queryClass }),
    ...(client !== undefined && { client }),
    ...(flags !== undefined && { flags: headerFlags(flags), dnssecOk: flags.includes("do") }),
  };
}

function parseName(text: string): Name {
  try {
    return Name.parse(text.endsWith(".") ? text : `${text}.`);
  } catch (error) {
    if (error instanceof NameError) throw new ExplainError(`${text} is not a domain name: ${error.reason}`);
    throw error;
  }
}

const HEADER_FLAGS: Readonly<Record<QueryFlag, number>> = { rd: Flag.RD, ad: Flag.AD, cd: Flag.CD, do: 0 };

function headerFlags(flags: readonly QueryFlag[]): number {
  return flags.reduce((word, flag) => word | HEADER_FLAGS[flag], 0);
}

function within(
  answer: Promise<ClientAnswer>,
  timeout: number | undefined,
  clock: Clock,
): Promise<ClientAnswer | { readonly waited: number }> {
  if (timeout === undefined) return answer;
  let timer: Timer | undefined;
  const late = new Promise<{ readonly waited: number }>((resolve) => {
    timer = clock.after(timeout, () => resolve({ waited: timeout }));
  });
  return Promise.race([answer, late]).finally(() => timer?.cancel());
}
