/** DNS over QUIC with clients that break the protocol, and with many that mean no good. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { decodeMessage, encodeMessage } from "../../src/dns/message.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { kdig } from "../support/dig.ts";
import { framed, queryOctets } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { type QuicCall, QuicCaller } from "../support/quic-client.ts";

const QUERY = framed(queryOctets("www.example.org.", "A", 0));
const PROTOCOL_ERROR = 2;
const EXCESSIVE_LOAD = 4;

describe("a quic:// listener", { skip: skipWithoutQuic("kdig") }, () => {
  const authority = new CertificateAuthority();
  let server: Portolan;
  let caller: QuicCaller;
  let port: number;
  before(async () => {
    const { certificate, key } = authority.issue({
      commonName: "x",
      hosts: ["example.org", "resumed.example.org"],
    });
    server = await Portolan.start(
      (portOf) => `
.:${portOf("dns")} quic://.:${portOf("quic")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${portOf("metrics")}
    tls cert.pem key.pem
    timeouts {
        read 2s
        idle 2s
    }
    quic {
        max_streams 10
    }
    hosts {
        192.0.2.7 www.example.org
        ${Array.from({ length: 2000 }, (_, n) => `10.0.${n >> 8}.${n & 255} large.example.org`).join("\n        ")}
        fallthrough
    }
    erratic {
        drop 1
    }
}
quic://.:${portOf("few")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    timeouts {
        idle 60s
    }
    quic {
        max_connections 3
    }
    whoami
}
quic://.:${portOf("patient")} {
    bind 127.0.0.1
    tls cert.pem key.pem
    timeouts {
        read 30s
        idle 60s
    }
    whoami
}`,
      { files: { "cert.pem": certificate, "key.pem": key } },
    );
    caller = await QuicCaller.open(authority.certificate);
    port = server.portOf("quic");
  });
  after(async () => {
    caller.close();
    await server[Symbol.asyncDispose]();
  });

  async function answers(): Promise<void> {
    const call = await caller.dial(port, "doq", "example.org").connected();
    assert.ok(((await call.ask(QUERY))?.length ?? 0) > 40);
    call.connection.close(0);
  }

  test("answers on every stream of a connection, more than it has at one time", async () => {
    const call = await caller.dial(port, "doq").connected();
    const waiting = Array.from({ length: 90 }, () => call.ask(QUERY));
    for (const octets of await Promise.all(waiting)) {
      const { id, answer } = decodeMessage(octets?.subarray(2) ?? new Uint8Array());
      assert.deepEqual([id, answer.length], [0, 1]);
    }
    for (let again = 0; again < 150; again++) assert.ok(await call.ask(QUERY));
    call.connection.close(0);
  });

  test("sends answers of tens of thousands of octets", async () => {
    const call = await caller.dial(port, "doq").connected();
    const large = framed(queryOctets("large.example.org.", "A", 0));
    for (const octets of await Promise.all(Array.from({ length: 20 }, () => call.ask(large)))) {
      assert.ok((octets?.length ?? 0) > 30_000);
      assert.equal(octets?.length, 2 + (octets?.readUInt16BE(0) ?? 0));
    }
    call.connection.close(0);
  });

  test("takes up the session of an earlier connection to the same name", async () => {
    const connect = async (name: string): Promise<boolean> => {
      const call = await caller.dial(port, "doq", name).connected();
      assert.ok(await call.ask(QUERY));
      const { isResumed } = call.connection;
      call.connection.close(0);
      return isResumed;
    };
    assert.equal(await connect("resumed.example.org"), false);
    for (let again = 0; again < 5; again++) assert.equal(await connect("resumed.example.org"), true);
    assert.equal(await connect("example.org"), false);
    assert.equal(await connect("example.org"), true);
  });

  test("takes a query in pieces", async () => {
    const call = await caller.dial(port, "doq").connected();
    const { stream, heard } = call.open(QUERY.subarray(0, 1), false);
    await call.ask(QUERY);
    stream.write(QUERY.subarray(1, 9), false);
    await call.ask(QUERY);
    stream.write(QUERY.subarray(9), true);
    assert.ok(await heard);
    call.connection.close(0);
  });

  const query = { ...decodeMessage(queryOctets("www.example.org.", "A", 0)) };
  const keepalive = encodeMessage({
    ...query,
    edns: { udpSize: 1232, version: 0, dnssecOk: false, options: [{ code: 11, data: new Uint8Array() }] },
  });
  const wrong: readonly (readonly [what: string, octets: Uint8Array, isLast: boolean, uni?: boolean])[] = [
    ["a message id", framed(queryOctets("www.example.org.", "A", 5)), true],
    ["a second query", Buffer.concat([QUERY, QUERY]), true],
    ["an octet too many", Buffer.concat([QUERY, Buffer.of(0)]), false],
    ["no octet", new Uint8Array(), true],
    ["half a length", Buffer.of(0), true],
    ["an empty query", Buffer.of(0, 0), false],
    ["less than a header", framed(new Uint8Array(11)), false],
    ["half a query", QUERY.subarray(0, 20), true],
    ["rubbish", framed(new Uint8Array(40)), true],
    ["a reply", framed(Buffer.concat([Buffer.of(0, 0, 0x80), queryOctets("a.").subarray(3)])), true],
    ["edns-tcp-keepalive", framed(keepalive), true],
    ["a stream of its own alone", QUERY, false, true],
  ];
  for (const [what, octets, isLast, uni = false] of wrong) {
    test(`closes the connection of a client that sends ${what}`, async () => {
      const other = await caller.dial(port, "doq").connected();
      const call = await caller.dial(port, "doq").connected();
      call.open(octets, isLast, uni);
      const { by, code } = await call.closed;
      assert.deepEqual({ by, code }, { by: "peer", code: PROTOCOL_ERROR });
      assert.ok(await other.ask(QUERY), "another connection still works");
      other.connection.close(0);
    });
  }

  test("counts what broke the protocol", async () => {
    assert.equal(await counted(server, "coredns_dns_quic_responses_total", /status="0x2"/), wrong.length);
  });

  test("refuses other application protocols, and goes on", async () => {
    assert.equal((await caller.dial(port, "h3").closed).by, "peer");
    await answers();
  });

  test("resets the stream of a query that is dropped", async () => {
    const call = await caller.dial(port, "doq").connected();
    assert.equal(await call.ask(framed(queryOctets("dropped.example.", "A", 0))), undefined);
    assert.ok(await call.ask(QUERY));
    call.connection.close(0);
  });

  test("gives up queries that do not come, and connections without any", async () => {
    const call = await caller.dial(port, "doq").connected();
    assert.equal(await call.open(QUERY.subarray(0, 5), false).heard, undefined);
    const { by, code } = await call.closed;
    assert.deepEqual({ by, code }, { by: "peer", code: 0 });
  });

  test("has no more than 200 connections, and gives the place of a silent one to a new one", async () => {
    const patient = server.portOf("patient");
    const calls: QuicCall[] = [];
    for (let number = 0; number < 201; number++) calls.push(await caller.dial(patient, "doq").connected());
    const { by, code } = await Promise.race(calls.map(({ closed }) => closed));
    assert.deepEqual({ by, code }, { by: "peer", code: EXCESSIVE_LOAD });
    const call = await caller.dial(patient, "doq").connected();
    assert.ok(await call.ask(QUERY));
    for (const { connection } of [...calls, call]) connection.close(0);
    assert.ok((await counted(server, "portolan_dns_shed_total", /quic.*reason="connection"/)) > 0);
  });

  test("has no more connections than max_connections allows", async () => {
    const few = server.portOf("few");
    const calls: QuicCall[] = [];
    for (let number = 0; number < 4; number++) calls.push(await caller.dial(few, "doq").connected());
    const { by, code } = await Promise.race(calls.map(({ closed }) => closed));
    assert.deepEqual({ by, code }, { by: "peer", code: EXCESSIVE_LOAD });
    const call = await caller.dial(few, "doq").connected();
    assert.ok(await call.ask(QUERY));
    for (const { connection } of [...calls, call]) connection.close(0);
  });

  test("outlives rubbish, and abandoned handshakes", async () => {
    const socket = createSocket("udp4").bind(0, "127.0.0.1");
    await once(socket, "listening");
    const initial = Buffer.alloc(1200);
    initial.set([0xc3, 0, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0]);
    for (let count = 0; count < 3_000; count++) {
      initial.writeUInt32BE(count, 6);
      // By turns without a token, with a forged one, and no packet at all.
      initial[15] = count % 3 === 0 ? 0 : 60;
      const octets = count % 3 === 2 ? Buffer.alloc(1 + (count % 1400), count) : initial;
      await new Promise((resolve) => socket.send(octets, port, "127.0.0.1", resolve));
    }
    socket.close();
    await answers();
    const reply = await kdig({ address: "127.0.0.1", port }, "+quic", "www.example.org");
    assert.equal(reply.status, "NOERROR");
    assert.equal(server.program.errors, "");
  });
});
