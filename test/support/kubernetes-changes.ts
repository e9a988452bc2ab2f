/** The table of changes in a cluster, put to a server that knows the cluster. */
import assert from "node:assert/strict";
import type { Change, ChangeQuestion } from "../fixtures/kubernetes/changes.ts";
import type { ChangingCluster } from "./changing-cluster.ts";
import type { Server } from "./dns-client.ts";
import { absoluteName, askOverTcp, summaryOf, summaryWanted } from "./kubernetes-rules.ts";

/** Less than the 30 s for which a cache would go on with what it has. */
const PATIENCE_MS = 15_000;

/** Takes the steps of a change and asks after each, until answers are right. Until then they are the old ones, and never a mixture. */
export async function checkChange(
  { steps, questions }: Change,
  cluster: ChangingCluster,
  server: Server,
): Promise<void> {
  // Twice, so that a cache has it.
  for (let n = 0; n < 2; n++)
    for (const question of questions) {
      const { name, type } = question;
      assert.equal(await answerTo(server, question), wanted(question, 0), `${name} ${type} before all steps`);
    }
  for (const [index, { put = [], remove = [] }] of steps.entries()) {
    for (const object of put) cluster.put(object);
    for (const object of remove) cluster.remove(object);
    const deadline = Date.now() + PATIENCE_MS;
    for (const question of questions) {
      const [old, now] = [wanted(question, index), wanted(question, index + 1)];
      let answer = await answerTo(server, question);
      while (answer === old && old !== now && Date.now() < deadline)
        answer = await answerTo(server, question);
      assert.equal(answer, now, `${question.name} ${question.type} after step ${index + 1}`);
    }
  }
}

function wanted({ name, type, expected }: ChangeQuestion, at: number): string {
  const here = expected[at];
  if (here === undefined) assert.fail(`${name} ${type}: nothing is expected after step ${at}`);
  return summaryWanted(here);
}

async function answerTo(server: Server, { name, type }: ChangeQuestion): Promise<string> {
  const asked = absoluteName(name);
  return summaryOf(await askOverTcp(server, asked, type), asked);
}
