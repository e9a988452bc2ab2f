import assert from "node:assert/strict";
import { test } from "node:test";
import { Name } from "../../dns/name.ts";
import { Rcode } from "../../dns/numbers.ts";
import { RecordType } from "../../dns/type-names.ts";
import { rehearsalQuery } from "./rehearsal.ts";

test("a rehearsal query is like one from a client", () => {
  for (const name of [
    "db.shop.svc.cluster.local.",
    ".",
    `${`${"a".repeat(63)}.`.repeat(3)}${"b".repeat(61)}.`,
  ]) {
    const query = rehearsalQuery(Name.parse(name), RecordType.A, 7);
    assert.deepEqual([query.name.toString(), query.type, query.receivedAt], [name, RecordType.A, 7]);
    const outcome = query.listener.resolve(query);
    assert.ok("kind" in outcome && outcome.kind === "failed" && outcome.rcode === Rcode.SERVFAIL);
  }
});
