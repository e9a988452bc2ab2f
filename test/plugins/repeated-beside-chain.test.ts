/**
 * Two servers of the same Corefile get the same queries at the same times. One has its messages by the word and gives answers again, the other sends
 * each query through the chain: replies and metrics must not differ. `PORTOLAN_REPEAT_QUERIES=200000` is the long form.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeHost } from "../../src/corefile/node-host.ts";
import { encodeMessage, makeQuery, Name, parseRecordType } from "../../src/dns/index.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { MetricsRegistry } from "../../src/lib/metrics/metrics.ts";
import { FakeClock } from "../../src/lib/time/clock.ts";
import { FixedEndpoint } from "../../src/plugin/message/endpoint.ts";
import { thisMachine } from "../../src/server/configuration/machine.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { Server } from "../../src/server/server.ts";
import { type MessageReceiver, REPEATED_OCTETS, type ReplyPort } from "../../src/transports/transport.ts";
import { SeededRandom } from "../support/seeded-random.ts";

const QUERIES = Number(process.env.PORTOLAN_REPEAT_QUERIES ?? 4_000);

const SOURCES = `template IN A {
    match ^n(?P<ttl>[0-9])
    answer "{{ .Name }} {{ .Group.ttl }} IN A 192.0.2.{{ .Group.ttl }}"
    fallthrough
  }
  template IN TXT {
    answer "{{ .Name }} 3 IN TXT \\"{{ .Name }}\\""
  }
  template ANY ANY {
    rcode NXDOMAIN
    authority "example. 2 IN SOA ns.example. h.example. 1 2 3 4 2"
  }`;

/** The plugins in front of the sources. The first {@link REPEATING} allow repeated answers. */
const FRONTS: readonly (readonly string[])[] = [
  ["cache 30"],
  ["errors", "prometheus 127.0.0.1:0", "loadbalance", "cache 30"],
  ["prometheus 127.0.0.1:0", "errors", "cache 5 {\n serve_stale\n}"],
  ["loadbalance", "cache {\n keepttl\n}"],
  ["prometheus 127.0.0.1:0", "cache {\n success 16 3\n denial 16 3\n}"],
  ["cache 30", "minimal"],
  ["limit {\n all 30 60\n}", "cache 30"],
  [
    "prometheus 127.0.0.1:0",
    "errors",
    "limit {\n all 40\n nxdomain 8\n large 25\n large_size 40\n}",
    "cache 30",
  ],
  ["loadbalance", "limit {\n nodata 1\n nxdomain 5\n exempt 192.0.2.7\n action refused\n}", "cache 30"],
  ["rrl {\n requests-per-second 90\n window 1\n}", "cache 30"],
  ["prometheus 127.0.0.1:0", "cache {\n prefetch 2 1s 50%\n}"],
  ["prometheus 127.0.0.1:0", "log", "cache 30"],
  ["acl {\n block net 192.0.2.7/32\n}", "cache 30"],
  ["rrl {\n responses-per-second 3\n slip-ratio 2\n}", "cache 30"],
  ["bufsize 600", "cache 30"],
  ["metadata", "prometheus 127.0.0.1:0", "cache 30"],
  ["view own {\n expr client_ip() == '192.0.2.1'\n}", "cache 30"],
  ["rewrite ttl regex .* 7", "cache 30"],
];

const REPEATING = 10;

/** The word of a memory at which a message begins. */
const MESSAGE_AT = 100;

class Port implements ReplyPort {
  readonly client: FixedEndpoint;
  readonly local = new FixedEndpoint("192.0.2.2", 53, Uint8Array.of(192, 0, 2, 2));
  readonly words = new Int32Array(1024);
  readonly octets = new Uint8Array(this.words.buffer, 4 * MESSAGE_AT, 2048);
  readonly #out = new Uint8Array(4096);
  /** The address as words of the machine. */
  readonly names: Int32Array;
  reply = "nothing";
  again = 0;

  constructor(last: number) {
    this.client = new FixedEndpoint(`192.0.2.${last}`, 4242, Uint8Array.of(192, 0, 2, last));
    this.names = new Int32Array(this.client.octets.slice().buffer);
  }

  keep(): ReplyPort {
    return this;
  }

  buffer(): Uint8Array {
    return this.#out;
  }

  send(length: number): void {
    this.reply = Buffer.from(this.#out.subarray(0, length)).toString("hex");
  }

  drop(): void {
    this.reply = "nothing";
  }
}

class Side implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly metrics: MetricsRegistry;
  readonly ports: readonly Port[];
  readonly #server: Server;
  readonly #receiver: MessageReceiver;
  readonly #byWord: boolean;

  private constructor(server: Server, clock: FakeClock, metrics: MetricsRegistry, byWord: boolean) {
    this.#byWord = byWord;
    this.clock = clock;
    this.metrics = metrics;
    this.#server = server;
    this.ports = [new Port(1), new Port(7)];
    const [address] = server.addresses;
    const listener = server.listener(address?.label ?? "");
    assert.ok(listener !== undefined);
    this.#receiver = listener.receiver("udp");
  }

  static async start(corefile: string, byWord: boolean): Promise<Side> {
    const clock = new FakeClock({ now: 10_000 });
    const metrics = new MetricsRegistry({ processMetrics: false });
    const server = new Server({
      source: () => ({ text: corefile, file: "Corefile" }),
      registry: await PluginRegistry.builtIn(),
      host: nodeHost,
      machine: thisMachine({}),
      clock,
      random: { fraction: () => 0.5, unpredictable: () => 0x1234_5678 },
      log: new MemoryLog(),
      metrics,
      version: "0.0.0",
    });
    await server.start();
    return new Side(server, clock, metrics, byWord);
  }

  ask(octets: Uint8Array, client: number): string {
    const port = this.ports[client];
    assert.ok(port !== undefined);
    const { words } = port;
    words.fill(GARBAGE);
    port.octets.set(octets);
    if (!this.#byWord) this.#receiver.receive(port.octets, octets.length, port);
    else {
      const size = this.#receiver.repeat?.(words, MESSAGE_AT, octets.length, 4, false, port.names, 0) ?? 0;
      if (size > 0) {
        port.again++;
        port.reply = Buffer.from(port.octets.subarray(0, size)).toString("hex");
      } else {
        assert.deepEqual(port.octets.subarray(0, octets.length), octets);
        this.#receiver.receive(port.octets, octets.length, port, true);
      }
      const end = MESSAGE_AT + REPEATED_OCTETS / 4;
      assert.ok(words.every((word, at) => word === GARBAGE || (at >= MESSAGE_AT && at < end)));
    }
    return port.reply;
  }

  /** All counters, except times and memory. */
  async counted(): Promise<readonly string[]> {
    const { body } = await this.metrics.expose();
    const lines = body.split("\n").filter((line) => /^coredns_(cache|dns)_/.test(line));
    return lines.filter((line) => !/seconds_(sum|bucket)|memory/.test(line)).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.stop();
  }
}

const GARBAGE = 0xa5a5a5a5 | 0;

function makeOctets(random: SeededRandom): Uint8Array {
  const roll = (limit: number): number => random.below(limit);
  const name = `${roll(4) === 0 ? "N" : "n"}${roll(7)}${roll(5) === 0 ? "x" : ""}.example.`;
  const type = parseRecordType(["A", "A", "A", "TXT", "AAAA", "MX"][roll(6)] ?? "A") ?? 1;
  const query = makeQuery({ name: Name.parse(name), type }, { id: roll(0x10000) });
  const edns = { udpSize: 1232, version: 0, dnssecOk: roll(3) === 0, options: [] };
  const octets = encodeMessage(roll(3) === 0 ? { ...query, edns } : query);
  if (roll(6) === 0) octets[2] = 0;
  // Octets behind the end, and more questions than there are, are for the chain to judge.
  if (roll(40) === 0) return Uint8Array.of(...octets, 1, 2, 3);
  if (roll(40) === 0) octets[5] = 2;
  return octets;
}

for (const [seed, front] of FRONTS.entries()) {
  test(`the same with and without the chain: ${front.join(", ").replaceAll(/\s+/g, " ")}`, async () => {
    const corefile = `.:0 {\n  ${front.join("\n  ")}\n  ${SOURCES}\n}\n`;
    await using again = await Side.start(corefile, true);
    await using chain = await Side.start(corefile, false);
    const random = new SeededRandom(seed + 1);
    for (let query = 0; query < QUERIES; query++) {
      if (random.below(40) === 0) {
        const pause = [0.25, 1, 10, 100, 333, 999, 1000, 1500][random.below(8)] ?? 0;
        for (const { clock } of [again, chain]) clock.advance(pause);
      }
      const octets = makeOctets(random);
      const client = random.below(4) === 0 ? 1 : 0;
      assert.equal(again.ask(octets, client), chain.ask(octets, client), `query ${query}`);
    }
    assert.deepEqual(await again.counted(), await chain.counted());
    const times = again.ports.reduce((sum, port) => sum + port.again, 0);
    assert.ok(seed < REPEATING ? times > QUERIES / 50 : times === 0, `${times} were given again`);
  });
}
