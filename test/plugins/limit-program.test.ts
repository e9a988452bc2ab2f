/** `limit` and `rrl` in the program, asked by `dig`, and beside the `rate-limit` of BIND. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { dig } from "../support/dig.ts";
import { queryOctets, type Server, UdpClient } from "../support/dns-client.ts";
import { counted } from "../support/metrics.ts";
import { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";

const ZONE = [
  "$ORIGIN example.org.",
  "@ 60 IN SOA ns hostmaster 1 60 60 60 60",
  "@ 60 IN NS ns",
  "ns 60 IN A 192.0.2.1",
  "www 60 IN A 192.0.2.2",
];

interface Tally {
  full: number;
  truncated: number;
  dropped: number;
}

/** Sends queries, one after the other, at once. An answer to a last one of another kind ends the wait. */
async function tally(server: Server, name: string, count: number): Promise<Tally> {
  await using client = await UdpClient.connect(server);
  for (let id = 0; id < count; id++) client.send(queryOctets(name, "A", id));
  const seen: Tally = { full: 0, truncated: 0, dropped: 0 };
  for (;;) {
    const reply = await client.receive(1_000);
    if (reply === undefined) break;
    if (((reply[2] ?? 0) & 0x02) !== 0) seen.truncated++;
    else seen.full++;
  }
  seen.dropped = count - seen.full - seen.truncated;
  return seen;
}

test("dig gets its answer over TCP when it is above the limit", async () => {
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      prometheus 127.0.0.1:${port("metrics")}
      limit {
        all 5
        action tc
      }
      whoami
    }`,
  );
  const flood = await tally(server, "www.example.org.", 200);
  assert.ok(flood.full >= 5 && flood.full < 100, JSON.stringify(flood));
  assert.equal(flood.dropped, 0);
  // The bucket fills again while dig starts: queries beside it keep it empty.
  let direct = 0;
  for (; direct < 20; direct++) {
    const [reply] = await Promise.all([
      dig(server, "www.example.org", "A", "+ignore"),
      tally(server, "www.example.org.", 50),
    ]);
    if (reply.flags.includes("tc")) break;
  }
  assert.ok(direct < 20, "dig never saw TC");
  const { status, flags } = await dig(server, "www.example.org", "A", "+tcp");
  assert.equal(status, "NOERROR");
  assert.ok(!flags.includes("tc"));
  assert.ok((await counted(server, "portolan_limit_exceeded_total", /class="all",result="truncated"/)) > 100);
});

test("answers that are repeated in front of the chain are limited, too", async () => {
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      prometheus 127.0.0.1:${port("metrics")}
      limit {
        all 20 50
        action refused
      }
      cache 30
      hosts /dev/null example.org {
        192.0.2.1 www.example.org
      }
    }`,
  );
  const started = performance.now();
  let full = 0;
  const sent = 400;
  for (let round = 0; round < 4; round++) {
    await using client = await UdpClient.connect(server);
    for (let id = 0; id < sent / 4; id++) client.send(queryOctets("www.example.org.", "A", id));
    for (let got = 0; got < sent / 4; got++) {
      const reply = await client.receive(5_000);
      assert.ok(reply !== undefined, "no answer");
      if (((reply[3] ?? 0) & 0x0f) === 0) full++;
    }
  }
  // 50 at once, and 20 per second since then.
  const most = 50 + (20 * (performance.now() - started)) / 1_000;
  assert.ok(full >= 50 && full <= most + 1, `${full} of at most ${most}`);
});

test("rrl answers, truncates and drops as the rate-limit of BIND", {
  skip: skipWithout("named"),
}, async (t) => {
  const [perSecond, sent] = [10, 400];
  await using bind = await Peer.start("named", (port) => ({
    args: ["-g", "-c", "named.conf"],
    files: { zone: `${ZONE.join("\n")}\n` },
    config: [
      'options { directory "."; pid-file none; session-keyfile none; lock-file none;',
      `  listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };`,
      "  recursion no; dnssec-validation no; minimal-responses no;",
      `  rate-limit { responses-per-second ${perSecond}; window 5; slip 2; };`,
      "};",
      "controls { };",
      'zone "example.org" { type primary; file "zone"; };',
    ],
  }));
  await using portolan = await Portolan.start(
    (port) => `.:${port("dns")} {
        bind 127.0.0.1
        rrl {
          responses-per-second ${perSecond}
          window 5
          slip-ratio 2
        }
        file zone example.org
      }`,
    { files: { zone: `${ZONE.join("\n")}\n` } },
  );
  for (const [kind, name] of [
    ["responses", "www.example.org."],
    ["nxdomains", "none.example.org."],
    ["nodata", "example.org."],
  ] as const) {
    const theirs = await tally(bind, name, sent);
    const ours = await tally(portolan, name, sent);
    t.diagnostic(`${kind}: BIND ${JSON.stringify(theirs)}, rrl ${JSON.stringify(ours)}`);
    for (const { full, truncated, dropped } of [theirs, ours]) {
      assert.ok(full >= perSecond && full <= 3 * perSecond, `${kind}: ${full} answers`);
      assert.ok(truncated > 0 && dropped > 0, `${kind}: ${truncated} truncated, ${dropped} dropped`);
    }
    // A datagram that is lost on the way, on a busy machine, looks like one that was dropped.
    assert.ok(ours.truncated <= ours.dropped + 1);
    assert.ok(Math.abs(ours.truncated - theirs.truncated) <= 0.25 * sent);
    assert.ok(Math.abs(ours.full - theirs.full) <= 2 * perSecond);
  }
});

test("two threads grant one limit together", async () => {
  await using server = await Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      multisocket 2
      limit {
        all 1 100
        action refused
      }
      whoami
    }`,
  );
  // The kernel gives each source port to one of the threads.
  let full = 0;
  let asked = 0;
  const started = performance.now();
  for (let source = 0; source < 20; source++) {
    await using client = await UdpClient.connect(server);
    for (let id = 0; id < 20; id++) client.send(queryOctets("www.example.org.", "A", id));
    for (let id = 0; id < 20; id++) {
      const reply = await client.receive(5_000);
      assert.ok(reply !== undefined, "no answer");
      asked++;
      if (((reply[3] ?? 0) & 0x0f) === 0) full++;
    }
  }
  assert.equal(asked, 400);
  const most = 100 + (performance.now() - started) / 1_000;
  // Threads do not lock the table: at worst, two of them take the same token.
  assert.ok(full >= 99 && full <= most + 5, `${full} of at most ${most}`);
});
