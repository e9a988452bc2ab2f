/** `proxyproto { tlv_metadata }`: a proxy's extensions become metadata of the query. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { framed, queryOctets, TcpClient, UdpClient } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";

const SIGNATURE = "0d0a0d0a000d0a515549540a";
/** 192.0.2.7 port 1111 to 198.51.100.4 port 53, and one extension of three octets. */
const header = (protocol: "tcp" | "udp"): Buffer =>
  Buffer.from(
    `${SIGNATURE}21${protocol === "tcp" ? "11" : "12"}0012c0000207c633640704570035ea0003616263`,
    "hex",
  );

test("over UDP, TCP and HTTP, with headers of a trace too", async () => {
  await using server = await Portolan.start(
    (port) => `
.:${port("dns")} https://.:${port("http")} {
    bind 127.0.0.1
    metadata
    proxyproto {
        tlv_metadata
    }
    log . "{remote} {name} {/proxyproto/tlv}"
    whoami
}`,
  );
  const told = async (name: string): Promise<string> => {
    const [, line = ""] = await server.waitForLog(new RegExp(`^\\[INFO\\] (\\S+ ${name} \\S+)$`, "m"));
    return line;
  };
  await using udp = await UdpClient.connect(server);
  udp.send(Buffer.concat([header("udp"), queryOctets("udp.example.")]));
  assert.equal(await told("udp.example."), "192.0.2.7 udp.example. ea0003616263");
  udp.send(queryOctets("plain.example."));
  assert.equal(await told("plain.example."), "127.0.0.1 plain.example. -");

  await using tcp = await TcpClient.connect(server);
  tcp.socket.write(Buffer.concat([header("tcp"), framed(queryOctets("tcp.example."))]));
  assert.equal(await told("tcp.example."), "192.0.2.7 tcp.example. ea0003616263");

  for (const [name, more] of [
    ["http.example.", ""],
    ["traced.example.", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"],
  ] as const) {
    await using http = await TcpClient.connect({ address: server.address, port: server.portOf("http") });
    const query = Buffer.from(queryOctets(name)).toString("base64url");
    const request = `GET /dns-query?dns=${query} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;
    http.socket.write(Buffer.concat([header("tcp"), Buffer.from(request)]));
    assert.equal(await told(name), `192.0.2.7 ${name} ea0003616263`);
  }
});
