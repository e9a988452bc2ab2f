/** Before its load a server shows that it answers, and answers right: figures of a wrong answer are worth nothing. */
import { setTimeout as delay } from "node:timers/promises";
import { A, AAAA, decodeMessage, type Message, rcodeName } from "../../src/dns/index.ts";
import type { Check, Workload } from "../workloads.ts";
import { ask, encodeQuery } from "./ask.ts";
import type { RunningServer } from "./running-server.ts";

/** A server that answers wrongly. The benchmark ends. */
export class WrongAnswer extends Error {
  override readonly name = "WrongAnswer";
}

/** Milliseconds that a server may take to start. */
const START_PATIENCE = 30_000;
const BETWEEN_ATTEMPTS = 50;
const ATTEMPT = 1_000;

/**
 * Waits until the server answers at all, then compares its answers.
 * @throws WrongAnswer; Error where the server ends or never answers
 */
export async function checkAnswers(server: RunningServer, workload: Workload): Promise<void> {
  const transport = workload.load.startsWith("tcp") ? "tcp" : "udp";
  for (const check of workload.checks) {
    const reply = await firstReply(server, check, transport);
    const problem = server.kind.isEcho
      ? echoProblem(check, reply)
      : answerProblem(check, decodeMessage(reply));
    if (problem === undefined) continue;
    throw new WrongAnswer(
      `${server.kind.name}, workload ${workload.name}: ${check.name} ${check.type}: ${problem}`,
    );
  }
}

async function firstReply(
  server: RunningServer,
  { name, type }: Check,
  transport: "udp" | "tcp",
): Promise<Uint8Array> {
  const deadline = performance.now() + START_PATIENCE;
  while (performance.now() < deadline) {
    server.assertRunning();
    const reply = await ask({ port: server.port, transport, name, type, patience: ATTEMPT });
    // A server that still starts may say SERVFAIL.
    if (reply !== undefined && ((reply[3] ?? 0) & 0xf) !== SERVFAIL) return reply;
    await delay(BETWEEN_ATTEMPTS);
  }
  throw new Error(
    `${server.kind.name} does not answer ${name} ${type} within ${START_PATIENCE / 1000} s\n${server.output}`,
  );
}

const SERVFAIL = 2;

function echoProblem(check: Check, reply: Uint8Array): string | undefined {
  const expected = encodeQuery(check);
  expected[2] = (expected[2] ?? 0) | 0x80;
  return Buffer.compare(expected, reply) === 0 ? undefined : "the echo is not what was sent";
}

/** @returns what is wrong with an answer, undefined if nothing is. Exported for its test. */
export function answerProblem(check: Check, reply: Message): string | undefined {
  const rcode = rcodeName(reply.rcode);
  if (rcode !== check.rcode) return `${rcode} instead of ${check.rcode}`;
  const [question] = reply.questions;
  if (question === undefined || `${question.name}` !== `${check.name}.`)
    return `the answer is to ${question?.name ?? "no question"}`;
  const addresses = reply.answer.flatMap((record) =>
    A.is(record) || AAAA.is(record) ? [record.data.address] : [],
  );
  const [got, expected] = [addresses.toSorted().join(" "), check.addresses.toSorted().join(" ")];
  return got === expected ? undefined : `"${got}" instead of "${expected}"`;
}
