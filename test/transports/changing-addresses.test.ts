/** A reload moves a port between all addresses and one of them (`bind`, `health`), and turns no client away. */
import assert from "node:assert/strict";
import { get } from "node:http";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { exchangeUdp, queryOctets, type Server, TcpClient } from "../support/dns-client.ts";
import { type CorefileWriter, Portolan } from "../support/portolan.ts";

const corefile =
  (bind: string, health: string): CorefileWriter =>
  (port) =>
    `.:${port("dns")} {
      ${bind}
      health ${health}:${port("health")} {
        lameduck 0s
      }
      whoami
    }`;

/** Asks without pause until told to stop, each question on a socket of its own. */
class Asker {
  asked = 0;
  readonly lost: string[] = [];
  #stopped = false;
  readonly #askers: Promise<void>[];

  constructor(ways: Readonly<Record<string, () => Promise<boolean>>>) {
    this.#askers = Object.entries(ways).map(async ([way, ask]) => {
      while (!this.#stopped) {
        this.asked++;
        if (!(await ask().catch(() => false))) this.lost.push(way);
        await nextTurn();
      }
    });
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#askers);
  }
}

/** As kubelet does: a connection for each. */
function probe(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    get({ host: "127.0.0.1", port, path: "/health", agent: false }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode === 200));
    }).once("error", reject);
  });
}

async function askTcp(server: Server): Promise<boolean> {
  await using client = await TcpClient.connect(server);
  client.send(queryOctets("example."));
  return (await client.receive()) !== undefined;
}

test("no query and no probe is lost over every change of addresses", async () => {
  const all = ["", ""] as const;
  const one = ["bind 127.0.0.1", "127.0.0.1"] as const;
  const named = ["bind lo", "127.0.0.1"] as const;
  await using server = await Portolan.start(corefile(...all));
  const askers = new Asker({
    udp: async () => (await exchangeUdp(server, queryOctets("example."), 5_000)) !== undefined,
    tcp: () => askTcp(server),
    health: () => probe(server.portOf("health")),
  });
  // From each to each other, and to itself.
  for (const [bind, health] of [one, all, named, one, named, all, all, one, one, all, named]) {
    assert.match(await server.reload(corefile(bind, health)), /Reloading complete/);
  }
  await askers.stop();
  assert.deepEqual(askers.lost, []);
  // `bind` really binds: the other addresses are free again.
  const elsewhere = { address: "127.0.0.2", port: server.port };
  await assert.rejects(TcpClient.connect(elsewhere), /ECONNREFUSED/);
  assert.equal(await exchangeUdp(elsewhere, queryOctets("example."), 200), undefined);
  assert.ok(askers.asked > 30, `${askers.asked} questions`);
});

test("a port that another program has is refused still, and after the change no other program can bind it", async () => {
  await using server = await Portolan.start(corefile("", ""));
  assert.match(await server.reload(corefile("bind 127.0.0.1", "127.0.0.1")), /Reloading complete/);
  // A second server on the same port, as an operator starts it by mistake.
  const other = Portolan.start((port) => {
    port("dns");
    return `.:${server.port} {\n bind 127.0.0.1\n whoami\n}`;
  });
  await assert.rejects(other, /in use/);
});
