/** Primaries that never come to an end, or send anything else than a zone: the old zone stays, and others are asked. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createTcpServer, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { decodeMessage, encodeMessage, type Message } from "../../src/dns/message.ts";
import { Flag } from "../../src/dns/numbers.ts";
import type { ResourceRecord } from "../../src/dns/record-kind.ts";
import { parseRecord } from "../../src/dns/resource-record.ts";
import { createServer } from "../../src/index.ts";
import { framed } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { addressOf, sampleOf, untilSerial, withFolder, zoneText } from "../support/zone-copies.ts";
import { skipWithoutZonePeer, ZONE_PEERS } from "../support/zone-peers.ts";

const SOA = parseRecord("example.org. 60 IN SOA ns. h. 99 3600 3600 86400 5");
const NS = parseRecord("example.org. 60 IN NS ns.example.org.");

type Script = (query: Message) => Generator<Uint8Array>;

const reply = (query: Message, answer: readonly ResourceRecord[]): Uint8Array =>
  framed(encodeMessage({ ...query, flags: query.flags | Flag.QR, answer, authority: [], additional: [] }));

/** Sends what the script makes, as fast as it is read. */
async function liar(script: Script): Promise<{ port: number; [Symbol.asyncDispose](): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", (data) => {
      const messages = script(decodeMessage(data.subarray(2)));
      const send = (): void => {
        for (let next = messages.next(); !socket.destroyed; next = messages.next()) {
          if (next.done === true) return void socket.end();
          if (!socket.write(next.value)) return void socket.once("drain", send);
        }
      };
      send();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

const many = (name: (index: number) => string): ResourceRecord[] =>
  Array.from({ length: 60 }, (_, index) =>
    parseRecord(`${name(index)}.example.org. 60 IN TXT "${"x".repeat(200)}"`),
  );

const SCRIPTS: Readonly<Record<string, { readonly script: Script; readonly fault: RegExp }>> = {
  "new records without end": {
    *script(query) {
      yield reply(query, [SOA, NS]);
      for (let round = 0; ; round++)
        yield reply(
          query,
          many((index) => `n${round}-${index}`),
        );
    },
    fault: /the zone is larger than 1048576 octets/,
  },
  "the same records without end": {
    *script(query) {
      yield reply(query, [SOA, NS]);
      const message = reply(
        query,
        many((index) => `n${index}`),
      );
      for (;;) yield message;
    },
    fault: /the transfer is longer than 2097152 octets/,
  },
  "changes that come and go without end": {
    *script(query) {
      const [known] = query.authority;
      if (known === undefined) return;
      const next = parseRecord("example.org. 60 IN SOA ns. h. 8 3600 3600 86400 5");
      yield reply(query, [SOA, known, next]);
      const back = parseRecord("example.org. 60 IN SOA ns. h. 7 3600 3600 86400 5");
      for (;;)
        yield reply(query, [
          ...many((index) => `n${index}`),
          next,
          ...many((index) => `n${index}`),
          back,
          back,
          next,
        ]);
    },
    fault: /Failed to transfer/,
  },
  "octets without meaning": {
    *script() {
      yield Buffer.alloc(70_000, 0xa5);
    },
    fault: /not a reply to the query/,
  },
  "half of a zone": {
    *script(query) {
      yield reply(query, [SOA, NS, ...many((index) => `n${index}`)]);
    },
    fault: /EOF|ended early/,
  },
  "another zone": {
    *script(query) {
      yield reply(query, [parseRecord("example.net. 60 IN SOA ns. h. 99 1 1 1 1"), NS]);
    },
    fault: /the first record is not the SOA record of the zone/,
  },
};

for (const [title, { script, fault }] of Object.entries(SCRIPTS)) {
  test(`a primary that sends ${title} is skipped`, { skip: skipWithoutZonePeer("nsd") }, () =>
    withFolder(async (folder) => {
      const port = await freePort();
      await using bad = await liar(script);
      await using good = await ZONE_PEERS.nsd.start("example.org", {
        lines: zoneText(7, "192.0.2.7"),
        notify: port,
      });
      const corefile = `example.org:${port} {\n bind 127.0.0.1\n secondary {\n  transfer from 127.0.0.1:${bad.port} 127.0.0.1:${good.port}\n  max_size 1\n }\n}\n`;
      const log: string[] = [];
      await using server = await createServer({
        corefile,
        file: join(folder, "Corefile"),
        log: (line) => log.push(line),
      });
      await server.start();
      await untilSerial(port, 7, () => log.join("\n"));
      assert.deepEqual(await addressOf(port), { address: "192.0.2.7" });
      const failed = async (): Promise<number> =>
        sampleOf(await server.metrics(), 'portolan_transfer_in_total{zone="example.org.",result="failed"}');
      assert.ok((await failed()) >= 1);
      // Behind it, a NOTIFY may have all of them asked again.
      const transferred = log.findIndex((line) => line.includes("Transferred:"));
      assert.ok(transferred >= 0);
      const errors = log.slice(0, transferred).filter((line) => line.includes("[ERROR]"));
      assert.ok(
        errors.some((line) => fault.test(line)),
        errors.join("\n"),
      );
      assert.deepEqual([...new Set(errors)], errors, "each once");
    }),
  );
}
