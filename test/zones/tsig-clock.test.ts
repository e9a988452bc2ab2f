/** Signed queries while the clock of the server, or that of the client, is set. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  decodeMessage,
  encodeMessage,
  makeQuery,
  Name,
  Rcode,
  RecordType,
  TsigError,
  TsigExchange,
  type TsigKey,
  tsigAlgorithm,
} from "../../src/dns/index.ts";
import { createServer } from "../../src/index.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { FakeClock } from "../../src/lib/time/clock.ts";
import { exchangeUdp } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const DAY = 86_400;

test("a query holds within its fudge, whoever sets the clock", async () => {
  const algorithm = tsigAlgorithm(Name.parse("hmac-sha256."));
  assert.ok(algorithm !== undefined);
  const key: TsigKey = { name: Name.parse("key."), secret: Buffer.from(SECRET, "base64"), algorithm };
  const clock = new FakeClock();
  const port = await freePort();
  const corefile = `.:${port} {
    bind 127.0.0.1
    tsig {
        secret key. ${SECRET}
        require all
    }
    whoami
}`;
  await using server = await createServer({ corefile, clock, log: new MemoryLog() });
  await server.start();
  const began = clock.wallTime();
  const question = { name: Name.parse("www.example."), type: RecordType.A };
  /** @returns the rcode of the reply, or why it is not believed */
  const ask = async (signedAt: number, checkedAt = signedAt) => {
    let now = signedAt;
    const exchange = new TsigExchange(key, () => now);
    const reply = await exchangeUdp(
      { address: "127.0.0.1", port },
      exchange.sign(encodeMessage(makeQuery(question, { id: 7 }))),
    );
    assert.ok(reply !== undefined);
    now = checkedAt;
    try {
      return decodeMessage(exchange.verify(reply)).rcode;
    } catch (error) {
      assert.ok(error instanceof TsigError);
      return error.code === Rcode.BADTIME ? "BADTIME" : error.message;
    }
  };
  const base = Math.floor(began / 1_000);
  for (const jump of [0, DAY, 365 * DAY, -DAY, -365 * DAY]) {
    clock.setWallTime(began + jump * 1_000);
    const here = base + jump;
    for (const off of [0, 299, -299]) assert.equal(await ask(here + off), Rcode.NOERROR, `${jump} ${off}`);
    for (const off of [301, -301, DAY, -DAY, 365 * DAY])
      assert.equal(await ask(here + off), "BADTIME", `${jump} ${off}`);
    // The client's clock is set while it waits.
    assert.match(String(await ask(here, here + DAY)), /the clocks differ/);
  }
});
