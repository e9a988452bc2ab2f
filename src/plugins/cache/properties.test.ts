import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Rcode } from "../../dns/index.ts";
import type { Outcome, Query, ReplyContent } from "../../plugin/index.ts";
import { Answer, PluginTest, records } from "../../plugin/testing.ts";
import cache from "./index.ts";

const SOA = "org. 40 IN SOA ns.org. admin.org. 1 7200 900 1209600 86400";
const NAMES = ["a.org.", "b.org.", "A.ORG.", "aa.org.", "a.b.org."];
const TYPES = ["A", "AAAA", "TXT"];
const MAX_TTL = 60;

interface Step {
  /** Seconds that pass before the query. */
  readonly wait: number;
  readonly name: string;
  readonly type: string;
  readonly dnssecOk: boolean;
  /** The answer of the upstream: an answer with this TTL, or another outcome. */
  readonly upstream: number | "nxdomain" | "nodata" | "servfail" | "empty" | "fail" | "truncated";
  /** Whether the upstream takes a second. */
  readonly slow: boolean;
}

const step: fc.Arbitrary<Step> = fc.record({
  wait: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 3, noNaN: true }), fc.integer({ min: 0, max: 90 })),
  name: fc.constantFrom(...NAMES),
  type: fc.constantFrom(...TYPES),
  dnssecOk: fc.boolean(),
  upstream: fc.oneof(
    fc.integer({ min: 0, max: 200 }),
    fc.constantFrom("nxdomain", "nodata", "servfail", "empty", "fail", "truncated" as const),
  ),
  slow: fc.boolean(),
});

/** Larger than the number of questions. Each case makes a cache, and the default size takes much memory. */
const SMALL = "success 64\ndenial 64";

const CONFIGURATIONS = [
  { options: SMALL, staleSeconds: 0 },
  { options: "success 10 60 0\ndenial 64\nkeepttl", staleSeconds: 0 },
  { options: `prefetch 2 1m 50%\n${SMALL}`, staleSeconds: 0 },
  { options: `serve_stale 20s\n${SMALL}`, staleSeconds: 20 },
  { options: `serve_stale 20s verify 500ms 0s 5s\n${SMALL}`, staleSeconds: 20 },
  {
    options: `serve_stale 20s verify\nserve_stale_policy prefer_positive\nprefetch 1\n${SMALL}`,
    staleSeconds: 20,
  },
];

for (const { options, staleSeconds } of CONFIGURATIONS) {
  test(`answers are correct and fresh for any queries: ${options.replaceAll("\n", ", ")}`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 25 }), async (steps) => {
        await play(options, staleSeconds, steps);
      }),
      { numRuns: 60 },
    );
  });
}

/** Every reply carries as text when and for what it was made, so that the client's view can be checked. */
async function play(options: string, staleSeconds: number, steps: readonly Step[]): Promise<void> {
  const running = PluginTest.of(cache, `cache ${MAX_TTL} {\n${options}\n}`);
  const { clock } = running;
  const asking: Promise<void>[] = [];
  for (const { wait, name, type, dnssecOk, upstream, slow } of steps) {
    await clock.settle(wait * 1000);
    const askedAt = clock.now();
    const next = (query: Query): Outcome | Promise<Outcome> => {
      const answer = (): Outcome =>
        upstream === "fail" ? query.fail() : query.reply(contentOf(query, upstream, clock.now()));
      if (!slow) return answer();
      return new Promise((resolve) => {
        clock.after(1000, () => resolve(answer()));
      });
    };
    const outcome = running.outcome({ name, type, next, edns: { dnssecOk } });
    asking.push(
      Promise.resolve(outcome).then((settled) => {
        if (settled.kind !== "reply") return;
        checkReply(new Answer(settled), `${name.toLowerCase()} ${type} ${dnssecOk}`, askedAt, staleSeconds);
      }),
    );
  }
  await clock.settle(2000);
  await Promise.all(asking);
  await running.stop();
  assert.equal(clock.pendingTimers, 0);
}

/** The additional section says for which query the reply was made, when, and with which TTL. */
function contentOf(query: Query, upstream: Exclude<Step["upstream"], "fail">, now: number): ReplyContent {
  const type = TYPES.find((candidate) => records(example("x.", candidate, 5))[0]?.type === query.type) ?? "A";
  const ttl = typeof upstream === "number" ? upstream : 40;
  const stamp = records(
    `stamp. ${ttl} IN TXT "${`${query.name}`.toLowerCase()} ${type} ${query.dnssecOk}" "${now}" "${ttl}"`,
  );
  switch (upstream) {
    case "nxdomain":
      return { rcode: Rcode.NXDOMAIN, authority: records(SOA), additional: stamp };
    case "nodata":
      return { authority: records(SOA), additional: stamp };
    case "servfail":
      return { rcode: Rcode.SERVFAIL, additional: stamp };
    case "empty":
      return { additional: stamp };
    case "truncated":
      return { answer: records(example(`${query.name}`, type, ttl)), additional: stamp, truncated: true };
    default:
      return { answer: records(example(`${query.name}`, type, ttl)), additional: stamp };
  }
}

function example(name: string, type: string, ttl: number): string {
  return `${name} ${ttl} IN ${type} ${type === "A" ? "192.0.2.1" : type === "AAAA" ? "2001:db8::1" : "text"}`;
}

function checkReply(answer: Answer, question: string, askedAt: number, staleSeconds: number): void {
  const [stamp] = answer.additional;
  const match = /^stamp\. (\d+) IN TXT "(.*)" "(.*)" "(\d+)"$/.exec(stamp ?? "");
  assert.ok(match !== null, `a reply without stamp: ${stamp}`);
  const [, shown, madeFor, madeAt, ttl] = match;
  assert.equal(madeFor, question, "the answer is for this question");
  assert.ok(Number(shown) <= MAX_TTL, "no TTL above the maximum");
  // A TTL below the default MINTTL of 5 counts as 5; a query may have waited a second for its answer.
  const good = Math.min(Math.max(Number(ttl), 5), MAX_TTL);
  const age = (askedAt - Number(madeAt)) / 1000;
  assert.ok(age < good + staleSeconds, `${age} s old, good for ${good} s and ${staleSeconds} s more`);
  if (answer.reply.authoritative && Number(shown) > 0)
    assert.ok(age < good, "an answer that shows a TTL has not expired");
}
