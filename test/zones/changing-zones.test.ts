/** A zone that changes all the time by updates, and the servers that follow it by IXFR: in the end all hold the same. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { createServer } from "../../src/index.ts";
import { freePort } from "../support/free-ports.ts";
import { run } from "../support/program.ts";
import { copyOf, sampleOf, serialOf, untilSerial, withFolder, zoneText } from "../support/zone-copies.ts";
import { skipWithoutZonePeer, ZONE_PEERS } from "../support/zone-peers.ts";

const SECRET = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const ROUNDS = 12;

/** Adds, deletes, and changes of RRsets and TTLs, the same for the same round. */
function changes(round: number): string[] {
  const lines: string[] = [];
  for (let index = 0; index < 20; index++) {
    const name = `c${(round * 7 + index * 3) % 40}.example.org.`;
    lines.push(
      [
        `add ${name} ${60 + (round % 3) * 60} A 192.0.2.${round * 20 + index}`,
        `delete ${name} A`,
        `add deep.${name} 60 TXT "round ${round}"`,
        `delete deep.${name}`,
        `add *.${name} 300 MX 10 ${name}`,
        `delete h${round * 20 + index}.example.org. A`,
      ][(round + index) % 6] ?? "",
    );
  }
  return lines;
}

const skip = skipWithout("nsupdate") || skipWithoutZonePeer("bind") || skipWithoutZonePeer("knot");

test(
  "updates by the dozen reach BIND, Knot and a secondary here, on to the next, while copies go out",
  { skip },
  () =>
    withFolder(async (folder) => {
      const [first, second, third] = [await freePort(), await freePort(), await freePort()];
      writeFileSync(join(folder, "zone"), zoneText(1, "192.0.2.1").join("\n"));
      const [bindPort, knotPort] = [await freePort(), await freePort()];
      const corefile = `
example.org:${first} {
  bind 127.0.0.1
  multisocket 2
  tsig {
    secret update.example ${SECRET}
  }
  file ${join(folder, "zone")} {
    update update.example
  }
  transfer {
    to * 127.0.0.1:${bindPort} 127.0.0.1:${knotPort} 127.0.0.1:${second}
  }
}
example.org:${second} {
  bind 127.0.0.1
  secondary {
    transfer from 127.0.0.1:${first}
    directory ${join(folder, "kept")}
  }
  transfer {
    to * 127.0.0.1:${third}
  }
}
example.org:${third} {
  bind 127.0.0.1
  secondary {
    transfer from 127.0.0.1:${second}
  }
  transfer {
    to *
  }
}
`;
      await using server = await createServer({ corefile, file: join(folder, "Corefile") });
      await server.start();
      // They ask for the zone when they start, and wait long before they ask a primary again that was not there.
      await using bind = await ZONE_PEERS.bind.start("example.org", { primary: first, port: bindPort });
      await using knot = await ZONE_PEERS.knot.start("example.org", { primary: first, port: knotPort });
      const ports = [bind.port, knot.port, second, third];
      for (const port of ports) await untilSerial(port, 1, () => `the first state at ${port}`);
      const sample = async (result: string) =>
        sampleOf(
          await server.metrics(),
          `portolan_transfer_in_total{zone="example.org.",result="${result}"}`,
        );
      // At the start a secondary may ask before its primary listens.
      const failed = await sample("failed");
      for (let round = 0; round < ROUNDS; round++) {
        const script = join(folder, "script");
        // Each line is an update of its own, so that there are many steps.
        const sends = changes(round).flatMap((line) => [line, "send"]);
        writeFileSync(script, `server 127.0.0.1 ${first}\nzone example.org\n${sends.join("\n")}\n`);
        const copies = Promise.all([copyOf(first, "example.org."), copyOf(second, "example.org.")]);
        const { code, errors } = await run("nsupdate", [
          "-y",
          `hmac-sha256:update.example:${SECRET}`,
          script,
        ]);
        assert.equal(code, 0, errors);
        for (const copy of await copies) assert.ok(copy.length > 1_000, `${copy.length} records`);
      }
      const serial = await serialOf(first);
      assert.ok(serial !== undefined && serial > 100, `${serial}`);
      const expected = await copyOf(first, "example.org.");
      assert.ok(expected.length > 1_500);
      for (const port of ports) {
        await untilSerial(port, serial, () => `serial ${serial} at ${port}`);
        assert.deepEqual(await copyOf(port, "example.org."), expected, `${port}`);
      }
      assert.equal(await sample("failed"), failed);
      // The first state of each comes whole. So may another, where more has changed than the primary notes.
      assert.ok((await sample("ixfr")) > (await sample("axfr")));
    }),
);
