/** The order in which the upstreams of one query are tried (src/plugins/forward/README.md). */
import type { Random } from "../../plugin/contract/site.ts";

export const POLICY_NAMES = ["random", "round_robin", "sequential"] as const;
export type PolicyName = (typeof POLICY_NAMES)[number];

/** Most queries need only the first upstream, so the order of the others is computed on demand. */
export interface Policy {
  /** Index of the first upstream to try, out of `count`, which is at least 1. */
  first(count: number): number;
  /** All indexes except `first`, in the order in which to try them. */
  others(first: number, count: number): number[];
}

export function makePolicy(name: PolicyName, random: Pick<Random, "fraction">): Policy {
  switch (name) {
    case "random":
      return {
        first: (count) => (count === 1 ? 0 : Math.floor(random.fraction() * count)),
        others: (first, count) => shuffle(othersInOrder(first, count), random),
      };
    case "round_robin": {
      let turn = 0;
      return {
        first(count) {
          turn = (turn + 1) >>> 0;
          return turn % count;
        },
        others: othersInOrder,
      };
    }
    case "sequential":
      return { first: () => 0, others: othersInOrder };
  }
}

function othersInOrder(first: number, count: number): number[] {
  const others: number[] = [];
  for (let index = 0; index < count; index++) if (index !== first) others.push(index);
  return others;
}

function shuffle(indexes: number[], random: Pick<Random, "fraction">): number[] {
  for (let last = indexes.length - 1; last > 0; last--) {
    const other = Math.floor(random.fraction() * (last + 1));
    const [mine = 0, theirs = 0] = [indexes[last], indexes[other]];
    indexes[last] = theirs;
    indexes[other] = mine;
  }
  return indexes;
}
