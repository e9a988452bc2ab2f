/** Answers that the cache gave after they had expired. */
import { notReported, percent, queryCount, type Rule } from "./finding.ts";

const LEAST = 3;
const LEAST_SHARE = 0.005;

export const staleAnswers: Rule = (capture, traffic) => {
  const { first, last } = capture;
  const served = last?.now.servedStale;
  if (served === undefined) return [notReported("stale-answers", capture)];
  const before = first?.now.servedStale ?? 0;
  const isRecent = first !== undefined && served - before >= LEAST;
  // Without a share, the number since the start is compared with all queries since then.
  const count = isRecent ? served - before : served;
  const among = isRecent
    ? Math.max((last?.machine.finished ?? 0) - (first?.machine.finished ?? 0), count)
    : Math.max(last?.machine.finished ?? 0, count);
  const share = among === 0 ? 0 : count / among;
  if (count < LEAST || share < LEAST_SHARE) return [];
  return [
    {
      code: "stale-answers",
      title: `${queryCount(count)} (${percent(share)}) got an expired answer from the cache ${isRecent ? "while this ran" : "since the start"}`,
      explanation:
        "With serve_stale the cache answers from expired entries while what it asks is slow or fails: clients may get old addresses, and the failure itself stays hidden.",
      share: traffic.share(count),
      figures: { stale: count, queries: among },
      causes: [],
      remedies: [
        {
          text: "find out why fresh answers are missing: the findings about upstreams and SERVFAIL, or the log",
        },
      ],
    },
  ];
};
