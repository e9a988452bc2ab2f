/** A reload removes a listener of one address, and the listener of all addresses beside it takes over its clients. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { queryOctets, TcpClient } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";

const TEMPLATE = 'template IN A good.test {\n answer "{{ .Name }} 60 IN A 192.0.2.1"\n }';

for (const [title, before, after, ofOther] of [
  ["in one block", " bind 127.0.0.1 0.0.0.0\n", " bind 0.0.0.0\n", ""],
  ["in two blocks", "", "", " bind 127.0.0.1\n"],
] as const)
  test(`a connection to one address is answered after a reload that leaves all addresses, ${title}`, async () => {
    const block = (bind: string, key: string) => `${key} {\n${bind} ${TEMPLATE}\n}\n`;
    await using server = await Portolan.start((port) => {
      const other = ofOther === "" ? "" : block(ofOther, `good.test:${port("dns")}`);
      return block(before, `.:${port("dns")}`) + other;
    });
    await using client = await TcpClient.connect(server);
    client.send(queryOctets("a.good.test."));
    assert.ok((await client.receive()) !== undefined);
    await server.reload((port) => block(after, `.:${port("dns")}`));
    client.send(queryOctets("b.good.test."));
    assert.ok((await client.receive()) !== undefined, "the connection is answered after the reload");
  });
