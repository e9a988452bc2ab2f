/** The table of buckets, which the threads of the server share: otherwise each thread would grant the whole limit. */
import { BucketTable } from "../../lib/collections/bucket-table.ts";
import type { Site } from "../contract/site.ts";

export interface SharedBuckets {
  readonly table: BucketTable;
  /** Two secret numbers, for hashes. */
  readonly left: number;
  readonly right: number;
}

/** @param use called in a follower with the table of the leader, which replaces its own */
export function shareBuckets(
  buckets: number,
  { clock, feed, random }: Pick<Site, "clock" | "feed" | "random">,
  use: (shared: SharedBuckets) => void,
): SharedBuckets {
  const table = BucketTable.create(buckets, clock.wallTime() - clock.now());
  const left = random.unpredictable();
  const right = random.unpredictable();
  feed.provide(() => [{ memory: table.memory, left, right } satisfies Message]);
  feed.receive((message) => {
    const shared = message as Message;
    const epoch = clock.wallTime() - clock.now();
    use({ ...shared, table: BucketTable.over(shared.memory, epoch) });
  });
  return { table, left, right };
}

interface Message {
  readonly memory: SharedArrayBuffer;
  readonly left: number;
  readonly right: number;
}
