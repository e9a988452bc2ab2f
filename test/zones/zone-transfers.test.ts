/** Zones go from this server to BIND, NSD and Knot, and from them to this server, with changes alone and after NOTIFY. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../src/index.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import {
  addressOf,
  sampleOf,
  serialOf,
  untilAddress,
  untilSerial,
  withFolder,
  zoneText,
} from "../support/zone-copies.ts";
import { skipWithoutZonePeer, ZONE_PEERS, zoneFile, zonePeerNames } from "../support/zone-peers.ts";

const transfers = (way: "in" | "out", result: string): string =>
  `portolan_transfer_${way}_total{zone="example.org.",result="${result}"}`;

for (const name of zonePeerNames) {
  const { start } = ZONE_PEERS[name];
  const skip = skipWithoutZonePeer(name);

  test(`${name} takes a zone from this server, and the changes alone after NOTIFY`, { skip }, () =>
    withFolder(async (folder) => {
      const port = await freePort();
      const file = join(folder, "zone");
      writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
      const peerPort = await freePort();
      const corefile = `example.org:${port} {\n bind 127.0.0.1\n file ${file} {\n  reload 100ms\n }\n transfer {\n  to 127.0.0.1:${peerPort}\n }\n}\n`;
      await using server = await createServer({ corefile, file: join(folder, "Corefile") });
      await server.start();
      // It asks for the zone when it starts, and waits for long before it asks again a primary that was not there.
      await using peer = await start("example.org", { primary: port, port: peerPort });
      await untilSerial(peer.port, 1, () => peer.program.describe());
      writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
      await untilSerial(peer.port, 2, () => peer.program.describe());
      await untilAddress(peer.port, "192.0.2.2", () => peer.program.describe());
      assert.equal(sampleOf(await server.metrics(), transfers("out", "ixfr")), 1);
    }),
  );

  test(`this server takes a zone from ${name}, and the changes alone after NOTIFY`, { skip }, () =>
    withFolder(async (folder) => {
      const port = await freePort();
      await using peer = await start("example.org", { lines: zoneText(7, "192.0.2.7"), notify: port });
      const corefile = `example.org:${port} {\n bind 127.0.0.1\n secondary {\n  transfer from 127.0.0.1:${peer.port}\n }\n}\n`;
      await using server = await createServer({ corefile, file: join(folder, "Corefile") });
      await server.start();
      await untilSerial(port, 7, () => peer.program.describe());
      assert.deepEqual(await addressOf(port), { address: "192.0.2.7" });
      const { answer } = await ask({ address: "127.0.0.1", port }, "h1999.example.org.", "A");
      assert.deepEqual(answer[0]?.data, { address: "10.0.7.207" });
      peer.replaceFile("zone", zoneFile(zoneText(8, "192.0.2.8")));
      await untilSerial(port, 8, () => peer.program.describe());
      assert.deepEqual(await addressOf(port), { address: "192.0.2.8" });
      assert.equal(sampleOf(await server.metrics(), transfers("in", "ixfr")), 1);
    }),
  );
}

test("a zone goes through this server twice: file, secondary and on to another secondary", () =>
  withFolder(async (folder) => {
    const [first, second, third] = [await freePort(), await freePort(), await freePort()];
    const file = join(folder, "zone");
    writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
    const corefile = `
example.org:${first} {
  bind 127.0.0.1
  file ${file} {
    reload 100ms
  }
  transfer {
    to 127.0.0.1:${second}
  }
}
example.org:${second} {
  bind 127.0.0.1
  secondary {
    transfer from 127.0.0.1:${first}
  }
  transfer {
    to 127.0.0.1:${third}
  }
}
example.org:${third} {
  bind 127.0.0.1
  secondary {
    transfer from 127.0.0.1:${second}
  }
}
`;
    const log = new MemoryLog();
    await using server = await createServer({ corefile, file: join(folder, "Corefile"), log });
    await server.start();
    await untilSerial(third, 1, () => log.lines.join("\n"));
    writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
    await untilSerial(third, 2, () => log.lines.join("\n"));
    assert.deepEqual(await addressOf(third), { address: "192.0.2.2" });
  }));

test("all threads of a secondary follow a NOTIFY that one of them gets", () =>
  withFolder(async (folder) => {
    const [first, second] = [await freePort(), await freePort()];
    const file = join(folder, "zone");
    const write = (serial: number) => writeFileSync(file, zoneText(serial, "192.0.2.1").join("\n"));
    write(1);
    const corefile = `
example.org:${first} {
  bind 127.0.0.1
  file ${file} {
    reload 100ms
  }
  transfer {
    to 127.0.0.1:${second}
  }
}
example.org:${second} {
  bind 127.0.0.1
  multisocket 3
  secondary {
    transfer from 127.0.0.1:${first}
  }
}
`;
    await using server = await createServer({ corefile, file: join(folder, "Corefile") });
    await server.start();
    await untilSerial(second, 1, () => "the first state");
    const deadline = performance.now() + 60_000;
    // NOTIFY comes to some thread; all have to hear of it, whichever that is.
    for (let serial = 2; serial <= 6; serial++) {
      write(serial);
      // Each query has a port of its own, and so a thread of its own.
      let round = 0;
      while (round < 30) {
        const before = await serialOf(second);
        if (before !== serial)
          await untilSerial(second, serial, () => `after ${round} answers with ${serial}`);
        round = before === serial ? round + 1 : 0;
        assert.ok(performance.now() < deadline, `the threads do not agree on ${serial}`);
      }
    }
  }));
