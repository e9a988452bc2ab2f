/** Clients that take up TCP connections, and clients that read no replies: the others go on. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { test } from "node:test";
import { decodeMessage } from "../../src/dns/message.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { ask, framed, queryOctets, TcpClient } from "../support/dns-client.ts";
import { askOverTcp } from "../support/kubernetes-rules.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

/** As many connections are open on a listener. */
const MOST_CONNECTIONS = 16_384;
const TOO_MANY = 400;
/** Connections opened at the same time: fewer than wait to be accepted. */
const PORTION = 200;

function startServer(timeouts: string): Promise<Portolan> {
  return Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      health 127.0.0.1:${port("health")}
      prometheus 127.0.0.1:${port("metrics")}
      timeouts {
        ${timeouts}
      }
      hosts /dev/null example.com {
        192.0.2.1 www.example.com
        ${Array.from({ length: 250 }, (_, n) => `198.51.100.${n + 1} many.example.com`).join("\n")}
      }
    }`,
  );
}

async function checkOthers(server: Portolan, connection?: TcpClient): Promise<void> {
  for (const reply of [
    await ask(server, "www.example.com."),
    await askOverTcp(server, "www.example.com.", "A"),
  ])
    assert.deepEqual(reply.answer.map(formatData), ["192.0.2.1"]);
  if (connection !== undefined) {
    connection.send(queryOctets("www.example.com.", "A", 7));
    const reply = await connection.receive();
    assert.ok(reply, "no answer on a connection that was there before");
    assert.equal(decodeMessage(reply).id, 7);
  }
  assert.equal((await server.page("health", "/health")).status, 200);
}

/** The reason why this machine cannot open that many connections. */
function tooFewDescriptors(): string | false {
  const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
  const needed = MOST_CONNECTIONS + TOO_MANY + 500;
  return limit === "unlimited" || Number(limit) >= needed
    ? false
    : `${limit} descriptors may be open, ${needed} are needed`;
}

test("where silent clients have all connections, others get theirs", {
  skip: tooFewDescriptors(),
}, async () => {
  await using server = await startServer("read 10m\nidle 10m");
  await using connection = await TcpClient.connect(server);
  const silent: Socket[] = [];
  try {
    while (silent.length < MOST_CONNECTIONS + TOO_MANY) {
      const portion = Array.from({ length: PORTION }, () => connect(server.port, server.address));
      await Promise.all(portion.map((socket) => once(socket, "connect")));
      for (const socket of portion) {
        silent.push(socket);
        // Half of a length: no message, and no end.
        socket.write(Buffer.of(0));
        socket.on("error", () => undefined);
        socket.resume();
      }
      await checkOthers(server, connection);
    }
    const turnedAway = await counted(server, "portolan_dns_shed_total", /reason="connection"/);
    assert.ok(turnedAway > TOO_MANY, `${turnedAway} were turned away`);
    // The oldest went.
    await untilTrue(() => silent.slice(0, TOO_MANY).every((socket) => socket.destroyed), {
      what: "the oldest connections are closed",
      log: () => server.log,
    });
    const closed = silent.filter((socket) => socket.destroyed).length;
    assert.ok(closed <= turnedAway, `${closed} closed, ${turnedAway} counted`);
    assert.ok(silent.slice(-MOST_CONNECTIONS / 2).every((socket) => !socket.destroyed));
  } finally {
    for (const socket of silent) socket.resetAndDestroy();
  }
  await checkOthers(server, connection);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  assert.equal(server.program.errors, "");
});

test("clients that read no replies are read no further, then hung up on, and others are answered", async (t) => {
  await using server = await startServer("idle 2s");
  const before = server.residentMemory;
  // A reply has four kilobytes: far more of them than the buffers of both sides hold.
  const query = framed(queryOctets("many.example.com."));
  const queries = Buffer.concat(Array.from({ length: 5_000 }, () => query));
  const greedy: Socket[] = [];
  try {
    for (let n = 0; n < 40; n++) {
      const socket = connect(server.port, server.address);
      greedy.push(socket);
      socket.on("error", () => undefined);
      await once(socket, "connect");
      socket.pause();
      socket.write(queries);
    }
    for (let round = 0; round < 10; round++) await checkOthers(server);
    const grown = server.residentMemory - before;
    t.diagnostic(`${Math.round(grown / 2 ** 20)} MiB more`);
    assert.ok(grown < 300 * 2 ** 20, `${grown} octets more`);
    // Each is hung up on: what is left in the buffers is read, and then there is an end.
    for (const socket of greedy) {
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.resume();
      await closed;
    }
  } finally {
    for (const socket of greedy) socket.destroy();
  }
  await checkOthers(server);
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
  assert.equal(server.program.errors, "");
});
