/** Zone transfers and NOTIFY with TSIG, from this server to BIND, NSD and Knot, and from them to this server. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../src/index.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import {
  addressOf,
  serialOf,
  untilAddress,
  untilSerial,
  withFolder,
  zoneText,
} from "../support/zone-copies.ts";
import { skipWithoutZonePeer, ZONE_PEERS, zonePeerNames } from "../support/zone-peers.ts";

const KEY = { name: "transfer.example", secret: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" };
const TSIG = `tsig {\n  secret ${KEY.name} ${KEY.secret}\n  secret other.example ${KEY.secret}\n }`;

for (const name of zonePeerNames) {
  const { start } = ZONE_PEERS[name];
  const skip = skipWithoutZonePeer(name);

  test(
    `${name} with a key takes a zone, and its changes after a signed NOTIFY; without the key none does`,
    { skip },
    () =>
      withFolder(async (folder) => {
        const [port, peerPort] = [await freePort(), await freePort()];
        const file = join(folder, "zone");
        writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
        const corefile = `example.org:${port} {\n bind 127.0.0.1\n ${TSIG}\n file ${file} {\n  reload 100ms\n }\n transfer {\n  to 127.0.0.1:${peerPort}\n  key ${KEY.name}\n }\n}\n`;
        await using server = await createServer({ corefile, file: join(folder, "Corefile") });
        await server.start();
        // It asks for the zone when it starts, and waits long before it asks a primary again that was not there.
        await using peer = await start("example.org", { primary: port, port: peerPort, key: KEY });
        await untilSerial(peer.port, 1, () => peer.program.describe());
        const { rcode } = await ask({ address: "127.0.0.1", port }, "example.org.", "IXFR");
        assert.notEqual(rcode, 0);
        writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
        await untilSerial(peer.port, 2, () => peer.program.describe());
        await untilAddress(peer.port, "192.0.2.2", () => peer.program.describe());
      }),
  );

  test(`this server takes a zone from ${name}, which demands a key`, { skip }, () =>
    withFolder(async (folder) => {
      const [port, without, wrong] = [await freePort(), await freePort(), await freePort()];
      await using peer = await start("example.org", {
        lines: zoneText(7, "192.0.2.7"),
        notify: port,
        key: KEY,
      });
      const block = (at: number, option: string) =>
        `example.org:${at} {\n bind 127.0.0.1\n ${TSIG}\n secondary {\n  transfer from 127.0.0.1:${peer.port}\n  ${option}\n }\n}\n`;
      const corefile = `${block(port, `key ${KEY.name}`)}${block(without, "")}${block(wrong, "key other.example")}`;
      await using server = await createServer({ corefile, file: join(folder, "Corefile") });
      await server.start();
      await untilSerial(port, 7, () => peer.program.describe());
      assert.deepEqual(await addressOf(port), { address: "192.0.2.7" });
      const { answer } = await ask({ address: "127.0.0.1", port }, "h1999.example.org.", "A");
      assert.deepEqual(answer[0]?.data, { address: "10.0.7.207" });
      assert.equal(await serialOf(without), undefined);
      assert.equal(await serialOf(wrong), undefined);
    }),
  );
}

test("with a key, NOTIFY and transfers between servers of this program are signed", () =>
  withFolder(async (folder) => {
    const [first, second] = [await freePort(), await freePort()];
    const file = join(folder, "zone");
    writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
    const corefile = `
example.org:${first} {
  bind 127.0.0.1
  ${TSIG}
  file ${file} {
    reload 100ms
  }
  transfer {
    to 127.0.0.1:${second}
    key ${KEY.name}
  }
}
example.org:${second} {
  bind 127.0.0.1
  ${TSIG}
  secondary {
    transfer from 127.0.0.1:${first}
    key ${KEY.name}
  }
}
`;
    await using server = await createServer({ corefile, file: join(folder, "Corefile") });
    await server.start();
    await untilSerial(second, 1, () => "");
    writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
    await untilSerial(second, 2, () => "");
    assert.deepEqual(await addressOf(second), { address: "192.0.2.2" });
  }));
