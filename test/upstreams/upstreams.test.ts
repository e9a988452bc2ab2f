/** Several upstreams together, and real ones. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { type Script, ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { dig, kdig } from "../support/dig.ts";
import { say, TRUTH } from "../support/lying-upstream.ts";
import { outcome } from "../support/outcome.ts";
import { Peer } from "../support/peers.ts";
import { Portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

describe("several upstreams", () => {
  /** Runs with upstreams of these scripts, and with a closed port as the last upstream if `dead` is given. */
  async function withUpstreams(
    scripts: readonly Script[],
    options: readonly string[],
    run: (server: Portolan, upstreams: readonly ScriptedServer[]) => Promise<void>,
  ): Promise<void> {
    const upstreams = await Promise.all(scripts.map((script) => ScriptedServer.start(script)));
    try {
      await using server = await Portolan.start(
        (port) => `.:${port("dns")} {
          bind 127.0.0.1
          errors
          forward . ${upstreams.map(({ text }) => text).join(" ")} {
            ${options.join("\n")}
          }
        }`,
      );
      await run(server, upstreams);
    } finally {
      await Promise.all(upstreams.map((upstream) => upstream.stop()));
    }
  }
  const honest =
    (address: string): Script =>
    (asked) =>
      asked.send(say(asked, address));

  test("the second is asked where the first is silent", async () => {
    await withUpstreams(
      [() => undefined, honest(TRUTH)],
      ["policy sequential", "read_timeout 1s"],
      async (server) => {
        for (const transport of ["udp", "tcp"])
          assert.equal(await outcome(server, "a.example", "A", transport), `NOERROR ${TRUTH}`);
      },
    );
  });

  test("the second is asked where the first resets connections", async () => {
    const reset: Script = (asked) => void asked.socket?.resetAndDestroy();
    await withUpstreams([reset, honest(TRUTH)], ["policy sequential", "force_tcp"], async (server) => {
      assert.equal(await outcome(server, "a.example"), `NOERROR ${TRUTH}`);
    });
  });

  test("one that is down is skipped, and comes back", async () => {
    let up = false;
    const first: Script = (asked) => {
      if (up) honest("192.0.2.11")(asked);
    };
    const options = ["policy sequential", "read_timeout 100ms", "max_fails 1", "health_check 50ms"];
    await withUpstreams([first, honest("192.0.2.12")], options, async (server, [down]) => {
      const isFirst = async (): Promise<boolean> =>
        (await outcome(server, "a.example")) === "NOERROR 192.0.2.11";
      assert.equal(await isFirst(), false);
      // Once its probes failed, queries go past it at once.
      const queries = (): number => down?.asked.filter(({ name }) => name !== ".").length ?? 0;
      for (let seen = -1; seen !== queries(); ) {
        seen = queries();
        assert.equal(await isFirst(), false);
      }
      up = true;
      await untilTrue(isFirst, { what: "the first upstream is back", log: () => server.log });
    });
  });

  test("one that hung up once takes as many queries over TCP as before", async () => {
    const script: Script = (asked) => {
      if (asked.name.startsWith("close")) asked.socket?.end();
      else asked.send(say(asked, TRUTH));
    };
    await withUpstreams([script], ["force_tcp"], async (server) => {
      const ask = (label: string): Promise<string> => outcome(server, `${label}.example`);
      assert.equal(await ask("first"), `NOERROR ${TRUTH}`);
      assert.equal(await ask("close"), "SERVFAIL");
      const outcomes = await Promise.all(Array.from({ length: 200 }, (_, n) => ask(`name-${n}`)));
      assert.deepEqual([...new Set(outcomes)], [`NOERROR ${TRUTH}`]);
    });
  });

  test("failover asks the next one on the rcodes named", async () => {
    const refuse: Script = (asked) => asked.answer({ rcode: 5 });
    await withUpstreams(
      [refuse, honest(TRUTH)],
      ["policy sequential", "failover REFUSED"],
      async (server) => {
        assert.equal(await outcome(server, "a.example"), `NOERROR ${TRUTH}`);
      },
    );
  });

  test("max_concurrent refuses what is too much", async () => {
    await withUpstreams([() => undefined], ["max_concurrent 5", "read_timeout 2s"], async (server) => {
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, (_, n) => outcome(server, `${n}.example`)),
      );
      assert.deepEqual(
        outcomes.sort((a, b) => (a < b ? -1 : 1)),
        [...Array(15).fill("REFUSED"), ...Array(5).fill("SERVFAIL")],
      );
    });
  });
});

const TEXTS = Array.from({ length: 12 }, (_, n) => `${"x".repeat(200)}${n}`);
const PEERS = {
  unbound: () =>
    Peer.unbound(
      [
        "example. 300 IN SOA ns.example. root.example. 1 3600 600 86400 60",
        "www.example. 300 IN A 192.0.2.1",
        "www.example. 300 IN AAAA 2001:db8::1",
        ...TEXTS.map((text) => `large.example. 300 IN TXT "${text}"`),
      ],
      ["local-zone: example. static"],
    ),
  dnsmasq: () =>
    Peer.dnsmasq([
      "local=/example/",
      "host-record=www.example,192.0.2.1,2001:db8::1,300",
      ...TEXTS.map((text) => `txt-record=large.example,${text}`),
    ]),
} as const;

for (const [name, start] of Object.entries(PEERS)) {
  describe(`forwarding to ${name}`, { skip: skipWithout("dig", "kdig", name) }, () => {
    let upstream: Peer;
    let server: Portolan;
    before(async () => {
      upstream = await start();
      server = await Portolan.start(
        (port) => `.:${port("dns")} {
          bind 127.0.0.1
          errors
          forward . 127.0.0.1:${upstream.port}
        }
        prefer.udp:${port("dns")} example:${port("second")} {
          bind 127.0.0.1
          errors
          forward . 127.0.0.1:${upstream.port} {
            prefer_udp
          }
        }`,
      );
    });
    after(async () => {
      await server?.[Symbol.asyncDispose]();
      await upstream?.[Symbol.asyncDispose]();
    });

    test("addresses, with every client, over UDP and TCP", async () => {
      for (const options of [[], ["+tcp"], ["+noedns"], ["+dnssec", "+bufsize=4096"]]) {
        for (const client of [dig, kdig]) {
          for (const [type, address] of [
            ["A", "192.0.2.1"],
            ["AAAA", "2001:db8::1"],
          ] as const) {
            const reply = await client(server, "www.example", type, ...options);
            assert.equal(reply.status, "NOERROR");
            assert.deepEqual(reply.answer, [`www.example. 300 IN ${type} ${address}`]);
          }
        }
      }
    });

    test("what it says is passed on as it is", async () => {
      for (const words of [
        "www.example A",
        "www.example TXT",
        "nosuch.example A",
        "www.example CH TXT",
        "WwW.eXaMpLe A",
      ]) {
        const direct = await kdig(upstream, ...words.split(" "), "+norec");
        const through = await kdig(server, ...words.split(" "), "+norec");
        const { status, answer, authority } = through;
        assert.deepEqual(
          { status, answer, authority },
          { status: direct.status, answer: direct.answer, authority: direct.authority },
        );
      }
    });

    test("a large answer is cut for a small client, who gets all of it over TCP", async () => {
      const all = TEXTS.map((text) => `"${text}"`).sort(compareText);
      const texts = (answer: readonly string[]): string[] =>
        answer.map((record) => record.split(" ").at(-1) ?? "").sort(compareText);
      const cutOff = await dig(server, "large.example", "TXT", "+bufsize=512", "+ignore");
      assert.ok(cutOff.flags.includes("tc") && cutOff.answer.length < TEXTS.length);
      for (const client of [dig, kdig]) {
        const whole = await client(server, "large.example", "TXT", "+bufsize=512");
        assert.ok(!whole.flags.includes("tc"));
        assert.deepEqual(texts(whole.answer), all);
      }
    });

    test("with prefer_udp it is asked again over TCP, and a client over TCP gets all of it", async () => {
      const second = { address: server.address, port: server.portOf("second") };
      const whole = await dig(second, "large.example", "TXT", "+tcp", "+bufsize=512");
      assert.equal(whole.answer.length, TEXTS.length);
      const cutOff = await dig(second, "large.example", "TXT", "+bufsize=1232", "+ignore");
      assert.ok(cutOff.flags.includes("tc"));
    });
  });
}

function compareText(one: string, other: string): number {
  return one < other ? -1 : 1;
}
