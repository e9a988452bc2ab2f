/** Zones go from this server to NSD and Knot, and from them to this server, with changes alone and after NOTIFY. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { SOA } from "../src/dns/record-table.ts";
import { createServer } from "../src/index.ts";
import { ask } from "./support/dns-client.ts";
import { freePort } from "./support/free-ports.ts";
import { Peer, skipWithoutPeers } from "./support/peers.ts";

const PATIENCE = 20_000;
const KEY = { name: "transfer.example", secret: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" };
const TSIG = `tsig {\n  secret ${KEY.name} ${KEY.secret}\n  secret other.example ${KEY.secret}\n }`;

function zoneText(serial: number, address: string): string[] {
  const lines = [
    "$TTL 60",
    `@ SOA ns h ${serial} 3600 3600 86400 5`,
    "@ NS ns",
    "ns A 192.0.2.53",
    `www A ${address}`,
    '*.w TXT "w"',
  ];
  for (let index = 0; index < 2_000; index++) lines.push(`h${index} A 10.0.${index >> 8}.${index & 255}`);
  return lines;
}

async function serialOf(port: number): Promise<number | undefined> {
  const { answer } = await ask({ address: "127.0.0.1", port }, "example.org.", "SOA");
  const [record] = answer;
  return record !== undefined && SOA.is(record) ? record.data.serial : undefined;
}

async function untilSerial(port: number, serial: number, describe: () => string): Promise<void> {
  const deadline = performance.now() + PATIENCE;
  while ((await serialOf(port)) !== serial) {
    if (performance.now() > deadline) throw new Error(`no serial ${serial} in 20 s:\n${describe()}`);
  }
}

async function addressOf(port: number): Promise<unknown> {
  const { answer } = await ask({ address: "127.0.0.1", port }, "www.example.org.", "A");
  return answer[0]?.data;
}

async function withFolder(body: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "portolan-transfers-"));
  try {
    await body(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const [name, program] of [
  ["nsd", "nsd"],
  ["knot", "knotd"],
] as const) {
  const skip = skipWithoutPeers(program);

  test(`${name} takes a zone from this server, and its changes after NOTIFY`, { skip }, () =>
    withFolder(async (folder) => {
      const port = await freePort();
      const file = join(folder, "zone");
      writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
      await using peer = await Peer[name]("example.org", { primary: port });
      const corefile = `example.org:${port} {\n bind 127.0.0.1\n file ${file} {\n  reload 100ms\n }\n transfer {\n  to 127.0.0.1:${peer.port}\n }\n}\n`;
      await using server = await createServer({ corefile, file: join(folder, "Corefile") });
      await server.start();
      await untilSerial(peer.port, 1, () => peer.program.describe());
      writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
      await untilSerial(peer.port, 2, () => peer.program.describe());
      assert.deepEqual(await addressOf(peer.port), { address: "192.0.2.2" });
    }),
  );

  test(`this server takes a zone from ${name}`, { skip }, () =>
    withFolder(async (folder) => {
      const port = await freePort();
      await using peer = await Peer[name]("example.org", { lines: zoneText(7, "192.0.2.7"), notify: port });
      const corefile = `example.org:${port} {\n bind 127.0.0.1\n secondary {\n  transfer from 127.0.0.1:${peer.port}\n }\n}\n`;
      await using server = await createServer({ corefile, file: join(folder, "Corefile") });
      await server.start();
      await untilSerial(port, 7, () => peer.program.describe());
      assert.deepEqual(await addressOf(port), { address: "192.0.2.7" });
      const { answer } = await ask({ address: "127.0.0.1", port }, "h1999.example.org.", "A");
      assert.deepEqual(answer[0]?.data, { address: "10.0.7.207" });
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
    const lines: string[] = [];
    await using server = await createServer({ corefile, file: join(folder, "Corefile") });
    await server.start();
    await untilSerial(third, 1, () => lines.join("\n"));
    writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
    await untilSerial(third, 2, () => lines.join("\n"));
    assert.deepEqual(await addressOf(third), { address: "192.0.2.2" });
  }));

for (const [name, program] of [
  ["nsd", "nsd"],
  ["knot", "knotd"],
] as const) {
  const skip = skipWithoutPeers(program);

  test(
    `${name} with a key takes a zone, and its changes after a signed NOTIFY; without the key nobody does`,
    { skip },
    () =>
      withFolder(async (folder) => {
        const port = await freePort();
        const file = join(folder, "zone");
        writeFileSync(file, zoneText(1, "192.0.2.1").join("\n"));
        await using peer = await Peer[name]("example.org", { primary: port, key: KEY });
        const corefile = `example.org:${port} {\n bind 127.0.0.1\n ${TSIG}\n file ${file} {\n  reload 100ms\n }\n transfer {\n  to 127.0.0.1:${peer.port}\n  key ${KEY.name}\n }\n}\n`;
        await using server = await createServer({ corefile, file: join(folder, "Corefile") });
        await server.start();
        await untilSerial(peer.port, 1, () => peer.program.describe());
        const { rcode } = await ask({ address: "127.0.0.1", port }, "example.org.", "IXFR");
        assert.notEqual(rcode, 0);
        writeFileSync(file, zoneText(2, "192.0.2.2").join("\n"));
        await untilSerial(peer.port, 2, () => peer.program.describe());
        assert.deepEqual(await addressOf(peer.port), { address: "192.0.2.2" });
      }),
  );

  test(`this server takes a zone from ${name}, which demands a key`, { skip }, () =>
    withFolder(async (folder) => {
      const [port, without, wrong] = [await freePort(), await freePort(), await freePort()];
      await using peer = await Peer[name]("example.org", {
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
