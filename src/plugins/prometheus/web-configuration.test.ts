import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readWebConfiguration } from "./web-configuration.ts";

const folder = mkdtempSync(join(tmpdir(), "portolan-"));
after(() => rmSync(folder, { recursive: true }));
const path = join(folder, "web.yml");
const DIGEST = "$05$abcdefghijklmnopqrstuufh9gcQfElmjpl2Gl08TagDUV0g5N./C";

function read(text: string) {
  writeFileSync(path, text);
  return readWebConfiguration(path);
}

test("reads users and the rate limit", async () => {
  const text = `basic_auth_users: {a: $2y${DIGEST}, 12: "$2a${DIGEST}", __proto__: $2b${DIGEST}}`;
  const { users, rateLimit } = await read(`${text}\nrate_limit: {interval: 1m30s, burst: 3}\n`);
  assert.deepEqual(
    [...users],
    [
      ["a", `$2y${DIGEST}`],
      ["12", `$2a${DIGEST}`],
      ["__proto__", `$2b${DIGEST}`],
    ],
  );
  assert.deepEqual(rateLimit, { interval: 90_000, burst: 3 });
  assert.deepEqual((await read("rate_limit: {interval: 2000000000, burst: 1}")).rateLimit, {
    interval: 2_000,
    burst: 1,
  });
  for (const none of ["rate_limit:", "rate_limit: {interval: 0s}", "rate_limit: {burst: 1}"])
    assert.equal((await read(none)).rateLimit, undefined);
});

for (const [text, reason] of [
  [`basic_auth_users:\n  bob: $2x${DIGEST}`, /web\.yml:2: the value of user 'bob' is not a bcrypt hash/],
  [`basic_auth_users:\n  bob: $2b$03${DIGEST.slice(3)}`, /web\.yml:2: what user 'bob' has/],
  [`basic_auth_users:\n  bob: $2b${DIGEST.slice(0, -1)}`, /web\.yml:2: what user 'bob' has/],
  [
    `basic_auth_users:\n  a: $2b${DIGEST}\n  bob: $2b$15${DIGEST.slice(3)}`,
    /web\.yml:3: .*user 'bob' has cost 15.*highest cost is 14/,
  ],
  ["basic_auth_users:\n  - bob", /web\.yml:2: 'basic_auth_users' is not a map/],
  ["basic_auth_users:\n  bob: {a: b}", /web\.yml:2: what user 'bob' has/],
  [`basic_auth_users: {a: &x $2b${DIGEST}, b: *x}`, /alias/i],
  [`basic_auth_users:\n  a: $2b${DIGEST}\n  a: $2b${DIGEST}`, /unique/],
  ["rate_limit: {interval: 1h}", /'rate_limit\.burst' is not a whole number of 1 or more/],
  ["rate_limit: {interval: 1h, burst: 1.5}", /'rate_limit\.burst' is not a whole number/],
  ["rate_limit: {interval: soon, burst: 1}", /'rate_limit\.interval' is not a duration/],
  ["rate_limit: {interval: -1s, burst: 1}", /'rate_limit\.interval' is not a duration/],
  ["rate_limit: {rate: 1}", /unknown option 'rate_limit\.rate'/],
] as const)
  test(`${JSON.stringify(text)} is refused, and its hashes are not told`, async () => {
    await assert.rejects(read(text), (error: unknown) => {
      assert.ok(error instanceof Error);
      assert.match(error.message, reason);
      assert.doesNotMatch(error.message, /abcdefgh/);
      return true;
    });
  });
