import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { encodeQuery, questionOf, waitForAnswer } from "./dns-probe.mjs";

test("writes a query", () => {
  const query = encodeQuery(0xabcd, { name: "a.example.", type: 28 });
  assert.equal(query.toString("hex"), "abcd01000001000000000000016107657861" + "6d706c6500001c0001");
});

test("reads what a dig command asks", () => {
  const question = { address: "127.0.0.1", port: 1053, name: "web.shop.svc.cluster.local", type: 1 };
  assert.deepEqual(questionOf("dig @127.0.0.1 -p 1053 web.shop.svc.cluster.local"), question);
  assert.deepEqual(questionOf("dig +short @127.0.0.1 -p 1053 web.shop.svc.cluster.local a +noall"), question);
  assert.deepEqual(questionOf("dig -p 1053 -t SRV @::1 web.shop.svc.cluster.local"), {
    ...question,
    address: "::1",
    type: 33,
  });
  assert.deepEqual(questionOf("dig -p 1053 -x 10.0.0.7"), {
    ...question,
    name: "7.0.0.10.in-addr.arpa",
    type: 12,
  });
  assert.equal(questionOf("dig -x 10.0.0.7")?.port, 53);
});

test("reads no other command", () => {
  for (const command of ["", "kdig a", "dig", "dig -p x name", "dig -t NSEC5 name"]) {
    assert.equal(questionOf(command), undefined, command);
  }
});

/** A server that answers its queries with these rcodes, one after the other. */
async function startServer(t: TestContext, rcodes: readonly number[]) {
  const socket = createSocket("udp4");
  t.after(() => socket.close());
  let received = 0;
  socket.on("message", (query, from) => {
    const rcode = rcodes[received++];
    if (rcode === undefined) return;
    query.writeUInt16BE(0x8000 | rcode, 2);
    socket.send(query, from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    question: { address: "127.0.0.1", port: socket.address().port, name: "a", type: 1 },
    received: () => received,
  };
}

test("waits past failures until there is an answer", async (t) => {
  const { question, received } = await startServer(t, [2, 5, 0]);
  assert.equal(await waitForAnswer(question, new AbortController().signal), true);
  assert.equal(received(), 3);
});

test("takes NXDOMAIN for an answer", async (t) => {
  const { question } = await startServer(t, [3]);
  assert.equal(await waitForAnswer(question, new AbortController().signal), true);
});

test("waits until the signal", async (t) => {
  const { question } = await startServer(t, []);
  assert.equal(await waitForAnswer(question, AbortSignal.timeout(250)), false);
});
