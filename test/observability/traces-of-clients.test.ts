/** Clients of every transport of HTTP that say which trace their query belongs to. */
import assert from "node:assert/strict";
import { connect } from "node:http2";
import { after, before, describe, test } from "node:test";
import { writePacketHead } from "../../src/lib/net/grpc-message.ts";
import { CertificateAuthority } from "../support/certificates.ts";
import { FakeCollector } from "../support/collector.ts";
import { queryOctets } from "../support/dns-client.ts";
import { fetchH3, h3Frame, requestFields, settings } from "../support/h3-client.ts";
import { Portolan } from "../support/portolan.ts";
import { skipWithoutQuic } from "../support/quic.ts";
import { QuicCaller } from "../support/quic-client.ts";

const skipQuic = skipWithoutQuic();
const QUERY = queryOctets("www.example.org.", "A", 0);
const authority = new CertificateAuthority();
const { certificate, key } = authority.issue({ commonName: "dns", hosts: ["127.0.0.1", "example.org"] });

describe("a query joins the trace of its client", () => {
  let collector: FakeCollector;
  let server: Portolan;
  before(async () => {
    collector = await FakeCollector.start();
    server = await Portolan.start(
      (portOf) => `
.:${portOf("dns")} https://.:${portOf("https")} grpc://.:${portOf("grpc")} ${skipQuic ? "" : `https3://.:${portOf("https3")}`} {
    bind 127.0.0.1
    tls cert.pem key.pem
    trace otlp ${collector.url}
    hosts {
        192.0.2.7 www.example.org
    }
}
`,
      { files: { "cert.pem": certificate, "key.pem": key } },
    );
  });
  after(async () => {
    await server[Symbol.asyncDispose]();
    await collector[Symbol.asyncDispose]();
  });

  async function isJoined(traceId: string): Promise<void> {
    await collector.until(() => collector.spans.some((span) => span.traceId === traceId));
  }

  async function post(
    name: string,
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
  ): Promise<void> {
    const session = connect(`https://127.0.0.1:${server.portOf(name)}`, { ca: authority.certificate });
    try {
      const stream = session.request({ ":method": "POST", ...headers });
      stream.end(body);
      for await (const chunk of stream) assert.ok(chunk);
    } finally {
      session.destroy();
    }
  }

  test("over HTTP/2", async () => {
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const headers = { ":path": "/dns-query", traceparent: `00-${traceId}-b7ad6b7169203331-01` };
    await post("https", headers, QUERY);
    await isJoined(traceId);
  });

  test("over gRPC", async () => {
    const traceId = "1af7651916cd43dd8448eb211c80319c";
    const headers = {
      ":path": "/coredns.dns.DnsService/Query",
      "content-type": "application/grpc",
      "x-b3-traceid": traceId,
      "x-b3-spanid": "b7ad6b7169203331",
      "x-b3-sampled": "1",
    };
    await post("grpc", headers, Buffer.concat([writePacketHead(QUERY.length), QUERY]));
    await isJoined(traceId);
  });

  test("over HTTP/3", { skip: skipQuic }, async () => {
    const traceId = "2af7651916cd43dd8448eb211c80319c";
    const caller = await QuicCaller.open(authority.certificate);
    try {
      const call = await caller.dial(server.portOf("https3"), "h3", "example.org").connected();
      settings(call);
      const fields = requestFields("POST", "/dns-query", {
        traceparent: `00-${traceId}-b7ad6b7169203331-01`,
      });
      const response = await fetchH3(call, Buffer.concat([h3Frame(1, fields), h3Frame(0, QUERY)]));
      assert.equal(response?.status, 200);
      await isJoined(traceId);
      call.connection.close(0x100);
    } finally {
      caller.close();
    }
  });
});
