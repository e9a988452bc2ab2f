import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/numbers.ts";
import { makeTestQuery } from "../../plugin/testing.ts";
import { StoreBusyError } from "../store/tables/state-reader.ts";
import { answerWhole } from "./busy-store.ts";

const query = makeTestQuery({ name: "web.shop.svc.cluster.local." });

test("an answer that can be read is given at once", () => {
  const reply = query.reply({ answer: [] });
  assert.equal(
    answerWhole(query, () => reply),
    reply,
  );
});

test("an answer from a store that is being changed is given in a later turn", async () => {
  let busy = 3;
  const reply = query.reply({ answer: [] });
  const outcome = answerWhole(query, () => {
    if (busy-- > 0) throw new StoreBusyError();
    return reply;
  });
  assert.ok(outcome instanceof Promise);
  assert.equal(await outcome, reply);
});

test("a store that is never readable again is a failure of the server", async () => {
  const outcome = await answerWhole(query, () => {
    throw new StoreBusyError();
  });
  assert.ok("rcode" in outcome);
  assert.equal(outcome.rcode, Rcode.SERVFAIL);
});

test("other faults are the caller's, at once and later", async () => {
  const fault = new RangeError("out of range");
  assert.throws(
    () =>
      answerWhole(query, () => {
        throw fault;
      }),
    fault,
  );
  let busy = 1;
  const later = answerWhole(query, () => {
    if (busy-- > 0) throw new StoreBusyError();
    throw fault;
  });
  await assert.rejects(async () => later, fault);
});
