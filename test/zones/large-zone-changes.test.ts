/** A zone that is large enough to be changed in place, from NSD and Knot: while thousands of records change, no answer mixes two serials. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { createServer } from "../../src/index.ts";
import { ask } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { untilTrue } from "../support/until-true.ts";
import { copyOf, sampleOf, untilSerial, withFolder } from "../support/zone-copies.ts";
import { skipWithoutZonePeer, ZONE_PEERS, zoneFile } from "../support/zone-peers.ts";

/** Records beside the first ones, and those of them that have another address with each serial. */
const HOSTS = 9_000;
const CHANGING = 2_000;

/** The mail servers, whose addresses come along with the MX records, have the serial in their addresses. */
function zoneText(serial: number): string[] {
  const lines = ["$TTL 60", `@ SOA ns h ${serial} 3600 3600 86400 5`, "@ NS ns", "ns A 192.0.2.53"];
  for (let index = 0; index < 20; index++) lines.push(`mail MX 10 h${index * 90}`);
  for (let index = 0; index < HOSTS; index++) {
    const octet = index < CHANGING ? serial : 0;
    lines.push(`h${index} A 10.${octet}.${index >> 8}.${index & 255}`);
  }
  // Names come and go, too, with empty non-terminals above them.
  for (let index = 0; index < 300; index++) lines.push(`x.s${serial}-${index} TXT "x"`);
  return lines;
}

for (const name of ["nsd", "knot"] as const) {
  for (const [way, onlyWhole] of [
    ["ixfr", false],
    ["axfr", true],
  ] as const) {
    const skip = skipWithoutZonePeer(name);
    test(`thousands of records change at once with ${way} from ${name}, for each answer`, { skip }, () =>
      withFolder(async (folder) => {
        const port = await freePort();
        const source = { lines: zoneText(1), notify: port, onlyWhole };
        await using peer = await ZONE_PEERS[name].start("example.org", source);
        const corefile = `example.org:${port} {
  bind 127.0.0.1
  secondary {
    transfer from 127.0.0.1:${peer.port}
  }
  transfer {
    to *
  }
}
`;
        await using server = await createServer({ corefile, file: join(folder, "Corefile") });
        await server.start();
        await untilSerial(port, 1, () => peer.program.describe());
        const seen = new Set<string>();
        let last = 1;
        for (const serial of [2, 3]) {
          peer.replaceFile("zone", zoneFile(zoneText(serial)));
          const isThere = untilSerial(port, serial, () => peer.program.describe()).then(() => true);
          for (let isDone = false; !isDone; ) {
            const { additional } = await ask({ address: "127.0.0.1", port }, "mail.example.org.", "MX");
            const serials = new Set(
              additional.map(({ data }) => String((data as { address?: string }).address).split(".")[1]),
            );
            assert.equal(serials.size, 1, [...serials].join());
            const [octet = ""] = serials;
            assert.ok(Number(octet) >= last, `${octet} after ${last}`);
            last = Number(octet);
            seen.add(octet);
            isDone = await Promise.race([isThere, Promise.resolve(false)]);
          }
          assert.deepEqual(await copyOf(port, "example.org."), await copyOf(peer.port, "example.org."));
        }
        assert.deepEqual([...seen].sort().slice(0, 2), ["1", "2"]);
        const sample = `portolan_transfer_in_total{zone="example.org.",result="${way}"}`;
        // What was before is put away first.
        await untilTrue(async () => sampleOf(await server.metrics(), sample) === (onlyWhole ? 3 : 2));
      }),
    );
  }
}
