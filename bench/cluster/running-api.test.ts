import assert from "node:assert/strict";
import { test } from "node:test";
import { USUAL_SIZE } from "./cluster-shape.ts";
import { startApi } from "./live-server.ts";

test("the API of the benchmark collects its garbage only while no event is awaited", async () => {
  await using liveApi = await startApi(USUAL_SIZE, false);
  const { events, moves, collections } = await liveApi.api.churn({ rate: 200, seconds: 2, watchedEvery: 10 });
  assert.equal(events, 400);
  assert.equal(moves.length, 40);
  assert.equal(collections, 0);
});
