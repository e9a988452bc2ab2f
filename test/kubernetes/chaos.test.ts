/**
 * A cluster changes at random while its API is cut, compacted, slowed, restarted and refuses to work. As soon as all is quiet, the
 * program answers every question as one that has just been started.
 *
 * PORTOLAN_CHAOS_SECONDS says for how long (30 unless given), PORTOLAN_CHAOS_SEED repeats a run's changes, PORTOLAN_CHAOS_THREADS says how many
 * threads answer (one or two unless given).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { decodeMessage } from "../../src/dns/message.ts";
import { rcodeName } from "../../src/dns/numbers.ts";
import type { ResourceRecord } from "../../src/dns/record-kind.ts";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { PluginTest } from "../../src/plugin/testing.ts";
import kubernetes from "../../src/plugins/kubernetes/index.ts";
import { queryOctets, UdpClient } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import type { Fault } from "../support/kubernetes-api/faults.ts";
import { RandomCluster } from "../support/kubernetes-api/random-cluster.ts";
import { untilSynced } from "../support/kubernetes-rules.ts";
import { Portolan } from "../support/portolan.ts";
import { SeededRandom } from "../support/seeded-random.ts";

const SECONDS = Number(process.env.PORTOLAN_CHAOS_SECONDS ?? "30");
const SEED = process.env.PORTOLAN_CHAOS_SEED;
const THREADS = process.env.PORTOLAN_CHAOS_THREADS;
/** Clients for each thread that look whether all is right. Which thread answers them is a matter of chance. */
const CLIENTS = 3;

/** How long a round of chaos takes, and how soon after it everything has to be right. */
const ROUND_MS = 1_000;
/** Usually a second. Where chaos hits one watch again and again its pauses grow, as they should, until another one wakes it. */
const CATCH_UP_MS = 10_000;

type Questions = ReturnType<RandomCluster["questions"]>;

test("answers are those of a fresh server whenever the chaos pauses", {
  timeout: (SECONDS + 60) * 1000,
}, async (context) => {
  const random = new SeededRandom(SEED === undefined ? undefined : Number(SEED));
  const threads = THREADS === undefined ? 1 + random.below(2) : Number(THREADS);
  context.diagnostic(`seed ${random.seed}, ${threads} threads`);
  await using api = await ApiSimulator.start({ streamsLists: random.below(2) === 0 });
  const cluster = new RandomCluster(api, random);
  for (let n = 0; n < 50; n++) cluster.change();
  await using program = await Portolan.start((port) =>
    [
      `.:${port("dns")} {`,
      "  bind 127.0.0.1",
      `  multisocket ${threads}`,
      "  cache 30",
      `  kubernetes cluster.local in-addr.arpa {\n    endpoint ${api.url}\n  }`,
      "}",
    ].join("\n"),
  );
  await untilSynced(program);
  const questions = cluster.questions();
  const end = Date.now() + SECONDS * 1000;
  let slowest = 0;
  let rounds = 0;
  for (; Date.now() < end; rounds++) {
    await disturb(api, cluster, random, () => askAll(program, questions));
    slowest = Math.max(slowest, await catchUp(api, program, questions, threads, random.seed));
  }
  context.diagnostic(`${rounds} rounds, the slowest was right after ${slowest} ms`);
});

async function disturb(
  api: ApiSimulator,
  cluster: RandomCluster,
  random: SeededRandom,
  askEverything: () => Promise<unknown>,
): Promise<void> {
  const end = Date.now() + ROUND_MS;
  while (Date.now() < end) {
    for (let n = random.below(5); n >= 0; n--) cluster.change();
    if (random.below(8) === 0) await misbehave(api, cluster, random);
    // Answers are cached from here on, right or wrong.
    if (random.below(3) === 0) await askEverything();
    await delay(10);
  }
  api.faults.clear();
}

async function misbehave(api: ApiSimulator, cluster: RandomCluster, random: SeededRandom): Promise<void> {
  switch (random.below(5)) {
    case 0:
      api.cutConnections();
      break;
    case 1:
      api.storage.compact();
      api.cutConnections();
      break;
    case 2:
      await api.close();
      for (let n = 0; n < 5; n++) cluster.change();
      if (random.below(2) === 0) api.storage.compact();
      await delay(random.below(150));
      await api.open();
      break;
    default:
      api.faults.add({ fault: randomFault(random) });
      api.cutConnections();
  }
}

function randomFault(random: SeededRandom): Fault {
  return random.pick<Fault>([
    { kind: "status", code: 500 },
    { kind: "status", code: 429 },
    { kind: "status", code: 504 },
    { kind: "answer", contentType: "text/html", body: "<html>" },
    { kind: "cut", afterOctets: random.below(5_000) },
    { kind: "end", afterOctets: random.below(5_000) },
    { kind: "slow", delayMs: random.below(20) },
  ]);
}

/** @returns after how many milliseconds every answer was right */
async function catchUp(
  api: ApiSimulator,
  program: Portolan,
  questions: Questions,
  threads: number,
  seed: number,
): Promise<number> {
  const expected = await freshAnswers(api, questions);
  const start = Date.now();
  for (;;) {
    const clients = Array.from({ length: threads === 1 ? 1 : CLIENTS * threads });
    const told = await Promise.all(clients.map(() => askAll(program, questions)));
    const wrong = told.flatMap((found) =>
      questions.flatMap(({ name, type }, at) =>
        found[at] === expected[at] ? [] : [`${name} ${type}: ${found[at]} and not ${expected[at]}`],
      ),
    );
    const passed = Date.now() - start;
    if (wrong.length === 0) return passed;
    if (passed > CATCH_UP_MS)
      assert.fail(`seed ${seed}: wrong after ${passed} ms:\n${wrong.join("\n")}\n${program.log}`);
    await delay(20);
  }
}

/** The log line of a server that has just listed everything. */
async function freshAnswers(api: ApiSimulator, questions: Questions): Promise<string[]> {
  const fresh = PluginTest.of(kubernetes, `kubernetes cluster.local in-addr.arpa {\nendpoint ${api.url}\n}`);
  try {
    await fresh.start();
    return await Promise.all(
      questions.map(async (question) => {
        const { reply } = await fresh.ask(question);
        return describe(reply.rcode, reply.answer);
      }),
    );
  } finally {
    await fresh.stop();
  }
}

async function askAll(program: Portolan, questions: Questions): Promise<string[]> {
  await using client = await UdpClient.connect(program);
  const answers = questions.map(() => "no answer");
  for (const [id, { name, type }] of questions.entries()) client.send(queryOctets(name, type, id));
  for (let left = questions.length; left > 0; left--) {
    const reply = await client.receive(1_000);
    if (reply === undefined) break;
    const { id, rcode, answer } = decodeMessage(reply);
    answers[id] = describe(rcode, answer);
  }
  return answers;
}

/** Without TTLs, which run down. */
function describe(rcode: number, answer: readonly ResourceRecord[]): string {
  const records = answer.map((record) => formatRecord(record).replace(/^(\S+)\s+\d+\s+/, "$1 "));
  return `${rcodeName(rcode)} ${records.sort().join("; ")}`;
}
