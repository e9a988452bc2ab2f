import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { memoryHost } from "../../corefile/host.ts";
import { A, decodeMessage, encodeMessage, makeQuery, Name, RecordType } from "../../dns/index.ts";
import { MemoryLog } from "../../lib/logging/log.ts";
import { MetricsRegistry } from "../../lib/metrics/metrics.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { fastestUdp } from "../../transports/fastest-udp.ts";
import { listenUdp, type UdpListen } from "../../transports/udp.ts";
import { systemRandom, thisMachine } from "../configuration/machine.ts";
import { Server } from "../server.ts";
import { testRegistry } from "./fixtures/plugins.ts";

class Running implements AsyncDisposable {
  readonly server: Server;
  readonly log = new MemoryLog();
  readonly metrics = new MetricsRegistry({ processMetrics: false });
  corefile: string;

  private constructor(corefile: string, listen: () => Promise<UdpListen>) {
    this.corefile = corefile;
    this.server = new Server({
      source: () => ({ text: this.corefile, file: "Corefile" }),
      registry: testRegistry(),
      host: memoryHost(),
      machine: thisMachine({}),
      clock: new SystemClock(),
      random: systemRandom(),
      log: this.log,
      metrics: this.metrics,
      version: "0.0.0",
      threadEntry: new URL("./fixtures/thread-entry.ts", import.meta.url),
      listenUdp: listen,
    });
  }

  static async start(corefile: string, listen: () => Promise<UdpListen> = fastestUdp): Promise<Running> {
    const running = new Running(corefile, listen);
    await running.server.start();
    return running;
  }

  get port(): number {
    const [address] = this.server.addresses;
    assert.ok(address !== undefined);
    return address.port;
  }

  async reload(corefile: string): Promise<void> {
    this.corefile = corefile;
    await this.server.reload();
  }

  /** Asks from a socket of its own each time, so that all data planes get their share. @returns the addresses */
  async ask(name: string, times = 1): Promise<Set<string>> {
    const answers = await Promise.all(Array.from({ length: times }, () => askUdp(this.port, name)));
    return new Set(answers);
  }

  async counted(): Promise<Record<string, number>> {
    const { body } = await this.metrics.expose();
    const lines = body.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
    return Object.fromEntries(
      lines.map((line) => {
        const space = line.lastIndexOf(" ");
        return [line.slice(0, space), Number(line.slice(space + 1))];
      }),
    );
  }

  async until(done: () => boolean | Promise<boolean>): Promise<void> {
    const deadline = performance.now() + 15_000;
    while (!(await done())) {
      if (performance.now() > deadline) throw new Error(`in vain:\n${this.log.lines.join("\n")}`);
      await sleep(20);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.stop();
  }
}

function question(name: string): Uint8Array {
  return encodeMessage(makeQuery({ name: Name.parse(name), type: RecordType.A }, { id: 99 }));
}

function addressIn(octets: Uint8Array): string {
  const [record] = decodeMessage(octets).answer;
  return record !== undefined && A.is(record) ? record.data.address : "none";
}

async function askUdp(port: number, name: string): Promise<string> {
  const socket = createSocket("udp4");
  try {
    const reply = await new Promise<Uint8Array>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer for ${name}`)), 20_000);
      socket.once("message", (message) => {
        clearTimeout(timer);
        resolve(message);
      });
      // Connected, it gets no datagram meant for the socket of another test that had this port before.
      socket.connect(port, "127.0.0.1", () => socket.send(question(name)));
    });
    return addressIn(reply);
  } finally {
    socket.close();
  }
}

async function askTcp(port: number, name: string): Promise<string> {
  const message = question(name);
  const socket = connect(port, "127.0.0.1");
  socket.end(Buffer.concat([Buffer.from([0, message.length]), message]));
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return addressIn(Buffer.concat(chunks).subarray(2));
}

const corefile = (planes: number, address: string, more = ""): string =>
  `.:0 {\n planes ${planes}\n told 192.0.2.77\n answer ${address}\n ${more}\n}\n`;

const LEADER = 'answers_total{role="leader"}';
const FOLLOWER = 'answers_total{role="follower"}';

for (const [way, listen] of [
  ["the batch", fastestUdp],
  ["the datagram", async () => listenUdp],
] as const) {
  describe(`three data planes, UDP by ${way}`, () => {
    test("all of them answer, over UDP and TCP, and their counts add up", async () => {
      await using app = await Running.start(corefile(3, "192.0.2.1"), listen);
      assert.equal(app.server.dataPlanes, 3);
      assert.deepEqual(await app.ask("a.", 90), new Set(["192.0.2.1"]));
      const udp = await app.counted();
      assert.equal((udp[LEADER] ?? 0) + (udp[FOLLOWER] ?? 0), 90);
      // The hash of 90 random ports chooses a socket: no socket gets nothing.
      assert.ok((udp[LEADER] ?? 0) > 5 && (udp[FOLLOWER] ?? 0) > 20, JSON.stringify(udp));
      assert.equal(udp.portolan_data_planes, 3);
      assert.equal(udp.portolan_data_plane_missed_scrapes_total ?? 0, 0);
      const answers = await Promise.all(Array.from({ length: 30 }, () => askTcp(app.port, "a.")));
      assert.deepEqual(new Set(answers), new Set(["192.0.2.1"]));
      const all = await app.counted();
      assert.ok((all[LEADER] ?? 0) > (udp[LEADER] ?? 0) && (all[FOLLOWER] ?? 0) > (udp[FOLLOWER] ?? 0));
      assert.equal((all[LEADER] ?? 0) + (all[FOLLOWER] ?? 0), 120);
    });
  });
}

test("one data plane costs no thread", async () => {
  await using app = await Running.start(corefile(1, "192.0.2.1"));
  assert.equal(app.server.dataPlanes, 1);
  assert.equal("portolan_data_planes" in (await app.counted()), false);
});

test("a port in use is refused, also where the other server would share it", async () => {
  await using app = await Running.start(corefile(2, "192.0.2.1"));
  for (const planes of [1, 2]) {
    const second = Running.start(corefile(planes, "192.0.2.2").replace(":0", `:${app.port}`));
    await assert.rejects(second, /cannot listen on tcp .*: the address is in use/);
  }
});

test("a plugin that the process needs once is in the leader alone, and followers log through it", async () => {
  await using app = await Running.start(corefile(3, "192.0.2.1", "single\n greeting"));
  const count = (line: string): number => app.log.lines.filter((other) => other === line).length;
  await app.until(() => count("[INFO] plugin/greeting: starts in the follower") === 2);
  assert.equal(count("[INFO] plugin/greeting: starts in the leader"), 1);
  assert.equal(count("[INFO] plugin/single: starts in the leader"), 1);
  assert.equal(count("[INFO] plugin/single: starts in the follower"), 0);
});

describe("what the leader knows", () => {
  test("is there before a follower serves, and every change follows", async () => {
    await using app = await Running.start(corefile(3, "192.0.2.1"));
    assert.deepEqual(await app.ask("told.", 60), new Set(["192.0.2.77"]));
    // Only the leader takes it: asked until it was.
    await app.until(async () => (await app.ask("tell-192-0-2-5.", 5)).has("192.0.2.5"));
    await app.until(async () => [...(await app.ask("told.", 60))].join() === "192.0.2.5");
  });
});

describe("reload", () => {
  test("changes all of them at once, and no query is lost", async () => {
    await using app = await Running.start(corefile(3, "192.0.2.1"));
    const asking = { on: true };
    const seen = new Set<string>();
    const asked = Promise.all(
      Array.from({ length: 4 }, async () => {
        while (asking.on) for (const address of await app.ask("a.", 3)) seen.add(address);
      }),
    );
    await app.reload(corefile(3, "192.0.2.9"));
    assert.deepEqual(await app.ask("a.", 60), new Set(["192.0.2.9"]));
    asking.on = false;
    await asked;
    assert.deepEqual(seen, new Set(["192.0.2.1", "192.0.2.9"]));
  });

  test("what one of them refuses changes nothing anywhere", async () => {
    await using app = await Running.start(corefile(3, "192.0.2.1"));
    await assert.rejects(app.reload(corefile(3, "192.0.2.2", "leaderstarts")), /as asked/);
    await assert.rejects(app.reload(corefile(5, "192.0.2.2", "leaderstarts")), /as asked/);
    await assert.rejects(app.reload("rubbish {"));
    assert.equal(app.server.dataPlanes, 3);
    assert.deepEqual(await app.ask("a.", 60), new Set(["192.0.2.1"]));
    assert.match(
      app.log.lines.join("\n"),
      /\[ERROR\] Restart failed: .*: error: does not start in a follower/,
    );
    await app.reload(corefile(3, "192.0.2.3"));
    assert.deepEqual(await app.ask("a.", 60), new Set(["192.0.2.3"]));
  });

  test("takes more threads and fewer, and no count falls", async () => {
    await using app = await Running.start(corefile(1, "192.0.2.1"));
    const { port } = app;
    await app.reload(corefile(4, "192.0.2.2"));
    assert.equal(app.port, port);
    assert.equal(app.server.dataPlanes, 4);
    assert.deepEqual(await app.ask("a.", 60), new Set(["192.0.2.2"]));
    assert.ok(((await app.counted())[FOLLOWER] ?? 0) > 10);
    assert.equal(await askTcp(port, "a."), "192.0.2.2");
    await app.reload(corefile(2, "192.0.2.3"));
    assert.equal(app.server.dataPlanes, 2);
    assert.deepEqual(await app.ask("a.", 60), new Set(["192.0.2.3"]));
    await app.reload(corefile(1, "192.0.2.4"));
    assert.equal(app.server.dataPlanes, 1);
    assert.deepEqual(await app.ask("a.", 60), new Set(["192.0.2.4"]));
    // The threads that ended have said what they counted when they are gone.
    await app.until(async () => {
      const counted = await app.counted();
      return (counted[LEADER] ?? 0) + (counted[FOLLOWER] ?? 0) === 181;
    });
    // Sockets that were opened for one alone let the others in.
    assert.ok(
      !app.log.lines.some((line) => line.includes("was opened for one thread")),
      app.log.lines.join("\n"),
    );
  });
});

test("connections that were opened before their thread is given up still get their answers", async () => {
  await using app = await Running.start(corefile(3, "192.0.2.1"));
  const sockets = Array.from({ length: 30 }, () => connect(app.port, "127.0.0.1"));
  for (const socket of sockets) socket.on("error", () => undefined);
  const received = sockets.map(async (socket) => {
    const chunks: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => chunks.push(chunk));
    await new Promise((resolve) => void socket.once("close", resolve));
    return Buffer.concat(chunks);
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  const reloading = app.reload(corefile(1, "192.0.2.2"));
  await app.until(() => app.server.dataPlanes === 1);
  const message = question("a.");
  for (const socket of sockets) socket.end(Buffer.concat([Buffer.from([0, message.length]), message]));
  const answers = (await Promise.all(received)).map((octets) =>
    octets.length > 2 ? addressIn(octets.subarray(2)) : "lost",
  );
  await reloading;
  assert.ok(!answers.includes("lost"), `${answers}`);
});

test("a thread that ends is replaced, and what it had counted still counts", async () => {
  await using app = await Running.start(corefile(2, "192.0.2.1"));
  await app.ask("a.", 40);
  const before = await app.counted();
  // The follower answers, and ends; the leader's answer says nothing. Asked one by one until it has ended.
  await app.until(async () => {
    await app.ask("crash.").catch(() => undefined);
    return app.server.dataPlanes === 1;
  });
  assert.match(
    app.log.lines.join("\n"),
    /\[ERROR\] The thread of data plane 1 ended; starting another: .*as asked/,
  );
  assert.deepEqual(await app.ask("a.", 20), new Set(["192.0.2.1"]));
  await app.until(() => app.server.dataPlanes === 2);
  assert.deepEqual(await app.ask("told.", 40), new Set(["192.0.2.77"]));
  await app.ask("a.", 40);
  const after = await app.counted();
  assert.ok((after[FOLLOWER] ?? 0) > (before[FOLLOWER] ?? 0));
  assert.equal(after.portolan_data_plane_restarts_total, 1);
});
