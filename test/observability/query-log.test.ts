/** The log of a running server: zone transfers with all their octets, JSON, and slow queries. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { ask } from "../support/dns-client.ts";
import { Portolan } from "../support/portolan.ts";

const HOSTS = Array.from({ length: 5_000 }, (_, at) => `h${at} 60 IN A 10.1.${at >> 8}.${at & 255}`);
const ZONE = [
  "$ORIGIN big.example.",
  "@ 60 IN SOA ns host 1 2 3 4 5",
  "@ 60 IN NS ns.example.",
  ...HOSTS,
  "",
];

test("a zone transfer is logged with the octets that dig counts", { skip: skipWithout("dig") }, async () => {
  await using server = await Portolan.start(
    (portOf) => `big.example:${portOf("dns")} {
    bind 127.0.0.1
    log . {json}
    file big.zone
    transfer {
        to *
    }
}
`,
    { files: { "big.zone": ZONE.join("\n") } },
  );
  const { port } = server;
  const shown = execFileSync("dig", ["@127.0.0.1", "-p", String(port), "big.example", "AXFR"], {
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  const octets = /XFR size: 5003 records \(messages \d+, bytes (\d+)\)/.exec(shown)?.[1];
  assert.ok(octets !== undefined, shown.slice(-500));
  const [line] = await server.waitForLog(/^\{.*"type":"AXFR".*\}$/m);
  const logged = JSON.parse(line);
  assert.equal(logged.rsize, Number(octets));
  assert.deepEqual(logged.flags, ["qr", "aa"]);
  assert.equal(logged.rcode, "NOERROR");
  assert.equal(logged.plugin, "transfer");
});

test("slow queries are logged, and fast ones are not", async () => {
  await using server = await Portolan.start(
    (portOf) => `.:${portOf("dns")} {
    bind 127.0.0.1
    log . "{name} took {duration}" {
        slower 150ms
    }
    erratic {
        drop 0
        truncate 0
        delay 2 200ms
    }
}
`,
  );
  // Two at a time: one of them is delayed.
  for (const name of ["a.example.", "b.example.", "c.example.", "d.example."]) await ask(server, name);
  await server.waitForLog(/ took [\s\S]* took /);
  const logged = [...server.log.matchAll(/^\[INFO\] (\S+) took 0\.(\d+)s$/gm)];
  assert.ok(
    logged.every(([, , fraction]) => Number(`0.${fraction}`) > 0.15),
    server.log,
  );
});
