/**
 * DNS over HTTP/3, asked by a client of our own over the same OpenSSL: neither curl nor kdig of Debian 12 speaks it. With clients that break
 * the protocol as well.
 */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { decodeMessage } from "../../src/dns/message.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { queryOctets } from "../support/dns-client.ts";
import { fetchH3, framesIn, h3Frame, request, requestFields, settings } from "../support/h3-client.ts";
import { counted } from "../support/metrics.ts";
import { type CorefileWriter, Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { type QuicCall, QuicCaller } from "../support/quic-client.ts";

const QUERY = queryOctets("www.example.org.", "A", 0);
const inPath = (octets: Uint8Array): string => `/dns-query?dns=${Buffer.from(octets).toString("base64url")}`;

describe("an https3:// listener", { skip: skipWithoutQuic() }, () => {
  const authority = new CertificateAuthority();
  let server: Portolan;
  let caller: QuicCaller;
  let port: number;
  const corefile =
    (address: string): CorefileWriter =>
    (portOf) =>
      `
.:${portOf("dns")} https3://.:${portOf("https3")} https://.:${portOf("https3")} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${portOf("metrics")}
    tls cert.pem key.pem
    https3 {
        max_streams 20
        max_connections 5
    }
    hosts {
        ${address} www.example.org
        ${Array.from({ length: 1000 }, (_, n) => `10.0.${n >> 8}.${n & 255} large.example.org`).join("\n        ")}
        ttl 40
        fallthrough
    }
    erratic {
        drop 1
    }
}`;
  before(async () => {
    const { certificate, key } = authority.issue({ commonName: "x", hosts: ["example.org"] });
    server = await Portolan.start(corefile("192.0.2.7"), {
      files: { "cert.pem": certificate, "key.pem": key },
    });
    caller = await QuicCaller.open(authority.certificate);
    port = server.portOf("https3");
  });
  after(async () => {
    caller.close();
    await server[Symbol.asyncDispose]();
  });

  async function dial(): Promise<QuicCall> {
    const call = await caller.dial(port, "h3", "example.org").connected();
    settings(call);
    return call;
  }

  test("answers GET and POST", async () => {
    const call = await dial();
    for (const octets of [request("GET", inPath(QUERY)), request("POST", "/dns-query", QUERY)]) {
      const response = await fetchH3(call, octets);
      assert.equal(response?.status, 200);
      const { answer } = decodeMessage(response?.body ?? new Uint8Array());
      assert.deepEqual(answer.map(formatData), ["192.0.2.7"]);
      // content-type: application/dns-message is entry 44 of the static table.
      assert.ok(response?.header.includes(0xc0 | 44));
      assert.match(response?.header.toString("latin1") ?? "", /max-age=40/);
    }
    call.connection.close(0x100);
  });

  test("says what it expects, before anything else", async () => {
    const call = await dial();
    await fetchH3(call, request("GET", inPath(QUERY)));
    const [type, ...rest] = Buffer.concat(call.heard);
    assert.equal(type, 0);
    // Headers of 16 KiB, and no dynamic table.
    assert.deepEqual(framesIn(Buffer.from(rest)), [{ type: 4, payload: Buffer.from([6, 0x80, 0, 0x40, 0]) }]);
    call.connection.close(0x100);
  });

  for (const [what, octets, status] of [
    ["another path", request("GET", "/other"), 404],
    ["another method", request("PUT", "/dns-query", QUERY), 400],
    ["no query", request("GET", "/dns-query"), 400],
    ["two queries", request("GET", `${inPath(QUERY)}&dns=AAAA`), 400],
    ["padded base64", request("GET", `${inPath(QUERY)}=`), 400],
    ["rubbish", request("POST", "/dns-query", Buffer.alloc(40)), 400],
    ["a body that is too long", request("POST", "/dns-query", Buffer.alloc(70_000)), 400],
    ["a query that is dropped", request("POST", "/dns-query", queryOctets("dropped.example.")), 500],
  ] as const) {
    test(`answers ${what} with ${status}`, async () => {
      const call = await dial();
      assert.equal((await fetchH3(call, octets))?.status, status);
      assert.equal((await fetchH3(call, request("GET", inPath(QUERY))))?.status, 200);
      call.connection.close(0x100);
    });
  }

  test("takes unknown frames and trailers, in pieces of an octet", async () => {
    const call = await dial();
    const octets = Buffer.concat([
      h3Frame(0x21, Buffer.from("grease")),
      h3Frame(1, requestFields("POST", "/dns-query")),
      h3Frame(0, QUERY.subarray(0, 10)),
      h3Frame(0x21, new Uint8Array()),
      h3Frame(0, QUERY.subarray(10)),
      h3Frame(1, Buffer.from([0, 0, 0xc0 | 29])),
    ]);
    const { stream, heard } = call.open(octets.subarray(0, 1), false);
    for (let at = 1; at < octets.length; at++) {
      stream.write(octets.subarray(at, at + 1), at === octets.length - 1);
      if (at % 16 === 0) await fetchH3(call, request("GET", inPath(QUERY)));
    }
    assert.ok(((await heard)?.length ?? 0) > 40);
    call.connection.close(0x100);
  });

  test("answers more requests than it takes at one time, with long answers", async () => {
    const call = await dial();
    const large = request("POST", "/dns-query", queryOctets("large.example.org."));
    const responses = await Promise.all(Array.from({ length: 80 }, () => fetchH3(call, large)));
    for (const response of responses) {
      assert.equal(decodeMessage(response?.body ?? new Uint8Array()).answer.length, 1000);
    }
    call.connection.close(0x100);
  });

  const bad: readonly (readonly [what: string, code: number, act: (call: QuicCall) => void])[] = [
    ["DATA before HEADERS", 0x105, (call) => void call.open(h3Frame(0, QUERY), true)],
    ["SETTINGS in a request", 0x105, (call) => void call.open(h3Frame(4, QUERY), true)],
    ["a frame of HTTP/2", 0x105, (call) => void call.open(h3Frame(6, QUERY), true)],
    ["half a frame", 0x106, (call) => void call.open(request("GET", inPath(QUERY)).subarray(0, 20), true)],
    ["a dynamic table", 0x200, (call) => void call.open(h3Frame(1, Buffer.from([1, 0, 0x80])), true)],
    [
      "an entry that there is not",
      0x200,
      (call) => void call.open(h3Frame(1, Buffer.from([0, 0, 0xff, 0x40])), true),
    ],
    ["half a field", 0x200, (call) => void call.open(h3Frame(1, Buffer.from([0, 0, 0x51, 9])), true)],
    ["a second control stream", 0x103, (call) => void call.open(Buffer.from([0, 4, 0]), false, true)],
    ["a push stream", 0x103, (call) => void call.open(Buffer.from([1, 0]), false, true)],
    ["entries for a table", 0x201, (call) => void call.open(Buffer.from([2, 0x3f, 0xe1, 0x1f]), false, true)],
    ["an acknowledgement", 0x202, (call) => void call.open(Buffer.from([3, 0x80]), false, true)],
    ["the end of a control stream", 0x104, (call) => void call.open(Buffer.from([2]), true, true)],
  ];
  for (const [what, code, act] of bad) {
    test(`closes the connection of a client that sends ${what}`, async () => {
      const call = await dial();
      act(call);
      const closed = await call.closed;
      assert.deepEqual([closed.by, closed.code], ["peer", code]);
    });
  }

  test("wants settings first", async () => {
    const call = await caller.dial(port, "h3").connected();
    call.open(Buffer.from([0, 7, 1, 0]), false, true);
    assert.equal((await call.closed).code, 0x10a);
  });

  for (const [what, octets] of [
    ["no method", h3Frame(1, Buffer.from([0, 0, 0xc0 | 23, 0xc0 | 1]))],
    ["two paths", h3Frame(1, Buffer.from([0, 0, 0xc0 | 17, 0xc0 | 23, 0xc0 | 1, 0xc0 | 1]))],
    ["nothing at all", new Uint8Array()],
    ["a header that is too long", h3Frame(1, Buffer.alloc(20_000))],
  ] as const) {
    test(`resets a request with ${what}, and goes on`, async () => {
      const call = await dial();
      assert.equal(await call.ask(octets), undefined);
      assert.equal((await fetchH3(call, request("GET", inPath(QUERY))))?.status, 200);
      call.connection.close(0x100);
    });
  }

  test("has no more connections than allowed", async () => {
    const calls: QuicCall[] = [];
    for (let number = 0; number < 6; number++) calls.push(await dial());
    const { by, code } = await Promise.race(calls.map(({ closed }) => closed));
    assert.deepEqual([by, code], ["peer", 0x107]);
    for (const { connection } of calls) connection.close(0x100);
  });

  test("counts responses by their status", async () => {
    const of = (status: number): Promise<number> =>
      counted(server, "coredns_dns_https3_responses_total", new RegExp(`https3://.*status="${status}"`));
    assert.ok((await of(200)) > 80);
    assert.equal(await of(404), 1);
    assert.equal(await of(400), 6);
    assert.equal(await of(500), 1);
  });

  test("loses no request in a reload, and shows a new certificate", async () => {
    const call = await dial();
    let isOver = false;
    let asked = 0;
    const asking = Array.from({ length: 5 }, async () => {
      while (!isOver) {
        assert.equal((await fetchH3(call, request("GET", inPath(QUERY))))?.status, 200);
        asked++;
      }
    });
    const other = new CertificateAuthority();
    const { certificate, key } = other.issue({ commonName: "x", hosts: ["example.org"] });
    writeFileSync(join(server.folder, "cert.pem"), certificate);
    writeFileSync(join(server.folder, "key.pem"), key);
    for (const number of [8, 9, 8, 9]) await server.reload(corefile(`192.0.2.${number}`));
    isOver = true;
    await Promise.all(asking);
    assert.ok(asked > 0);
    assert.equal((await caller.dial(port, "h3", "example.org").closed).by, "nobody");
    call.connection.close(0x100);
    caller.close();
    caller = await QuicCaller.open(other.certificate);
    (await caller.dial(port, "h3", "example.org").connected()).connection.close(0x100);
  });

  test("answers what it has taken when it ends, and says good-bye", async () => {
    const call = await caller.dial(port, "h3").connected();
    settings(call);
    await fetchH3(call, request("GET", inPath(QUERY)));
    const [{ code }, closed] = await Promise.all([server.stop(), call.closed]);
    assert.equal(code, 0);
    assert.deepEqual([closed.by, closed.code], ["peer", 0x100]);
    assert.ok(framesIn(Buffer.concat(call.heard).subarray(1)).some(({ type }) => type === 7));
    assert.equal(server.program.errors, "");
  });
});
