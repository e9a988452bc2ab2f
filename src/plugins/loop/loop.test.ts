import assert from "node:assert/strict";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { describe, type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { decodeMessage, encodeMessage, Name, recordTypeName } from "../../dns/index.ts";
import { type Feed, feedToNobody, type ListenerSite } from "../../plugin/contract/site.ts";
import type { Outcome, Site } from "../../plugin/index.ts";
import { answering, ConfigRefused, PluginTest, type QuestionOptions, until } from "../../plugin/testing.ts";
import loop from "./index.ts";

const ZONE = "example.org.";
/** Made from the random numbers of the test kit. */
const NAME = "327942116293285278.327942116293285278.example.org.";

interface Peer {
  readonly socket: Socket;
  readonly port: number;
  /** Waits for a query and returns its question. */
  received(): Promise<{ question: string; answer: (changes?: { id?: number; flags?: number }) => void }>;
}

/** A real socket in place of the server. */
async function peer(context: TestContext): Promise<Peer> {
  const socket = createSocket("udp4").bind(0, "127.0.0.1");
  context.after(() => socket.close());
  await once(socket, "listening");
  const { port } = socket.address();
  const queue: [Buffer, RemoteInfo][] = [];
  const waiting: (() => void)[] = [];
  socket.on("message", (message, from) => {
    queue.push([message, from]);
    waiting.shift()?.();
  });
  return {
    socket,
    port,
    async received() {
      if (queue.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
      const [message, from] = queue.shift() ?? assert.fail("nothing received");
      const query = decodeMessage(message);
      const [asked] = query.questions;
      return {
        question: `${recordTypeName(asked?.type ?? 0)} ${asked?.name}`,
        answer: (changes = {}) =>
          socket.send(
            encodeMessage({ ...query, flags: 0x8000, rcode: 3, ...changes }),
            from.port,
            from.address,
          ),
      };
    },
  };
}

function listenerAt(port: number, label = "dns://:53", host = "0.0.0.0"): ListenerSite {
  return { label, zone: Name.parse(ZONE), address: () => ({ host, port }) };
}

function pluginAt(
  listeners: readonly ListenerSite[],
  zones: readonly string[] = [ZONE, "example.net."],
  feed: Feed = feedToNobody,
): PluginTest<unknown> {
  const block: Site["block"] = {
    keys: [],
    zones: zones.map((zone) => Name.parse(zone)),
    settings: PluginTest.of(loop, "loop").settings,
    plugins: () => [],
    listeners: () => listeners,
  };
  return PluginTest.of(loop, "loop", { site: { block, feed } });
}

async function see(plugin: PluginTest<unknown>, question: Partial<QuestionOptions> = {}): Promise<Outcome> {
  return plugin.outcome({ name: NAME, type: "HINFO", next: answering({}), ...question });
}

describe("the probe", () => {
  test("is sent at the start, and its answer ends the watch", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([{ ...listenerAt(1, "tls://:853") }, listenerAt(server.port)]);
    await plugin.start();
    const { question, answer } = await server.received();
    assert.equal(question, `HINFO ${NAME}`);
    assert.equal(plugin.clock.pendingTimers, 1);
    answer();
    await until(() => plugin.clock.pendingTimers === 0);
    for (let count = 0; count < 5; count++) assert.equal((await see(plugin)).kind, "reply");
    assert.deepEqual(plugin.fatal, []);
  });

  test("is repeated each second, and any answer to any of them ends it", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port)]);
    await plugin.start();
    const first = await server.received();
    plugin.clock.advance(1_000);
    const second = await server.received();
    assert.equal(second.question, first.question);
    // Neither a query nor an answer to another query ends it.
    first.answer({ flags: 0 });
    first.answer({ id: 1 });
    for (let turn = 0; turn < 50; turn++) await nextTurn();
    assert.equal(plugin.clock.pendingTimers, 1);
    first.answer();
    await until(() => plugin.clock.pendingTimers === 0);
  });

  test("ends after 30 seconds", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port)]);
    await plugin.start();
    for (let attempt = 0; attempt < 29; attempt++) {
      await server.received();
      plugin.clock.advance(1_000);
    }
    await server.received();
    assert.equal(plugin.clock.pendingTimers, 1);
    plugin.clock.advance(1_000);
    assert.equal(plugin.clock.pendingTimers, 0);
    for (let count = 0; count < 5; count++) await see(plugin);
    assert.deepEqual(plugin.fatal, []);
  });

  test("ends with the plugin", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port)]);
    await plugin.start();
    await server.received();
    await plugin.stop();
    assert.equal(plugin.clock.pendingTimers, 0);
  });

  test("is skipped if there is no listener to query", async () => {
    const long = `${`${"a".repeat(63)}.`.repeat(3)}${"b".repeat(40)}.`;
    for (const plugin of [
      pluginAt([]),
      pluginAt([listenerAt(1, "tls://:853")]),
      pluginAt([{ ...listenerAt(1), address: () => undefined }]),
      pluginAt([listenerAt(1)], [long]),
    ]) {
      await plugin.start();
      assert.equal(plugin.clock.pendingTimers, 0);
      assert.match(plugin.log.lines[0] ?? "", /^\[DEBUG\] plugin\/loop: no probe for zone /);
      await plugin.stop();
    }
  });
});

describe("a loop", () => {
  test("is detected at the third sighting, which is dropped", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port, "dns://127.0.0.1:53", "127.0.0.1")]);
    await plugin.start();
    await server.received();
    assert.equal((await see(plugin)).kind, "reply");
    assert.equal((await see(plugin, { name: NAME.toUpperCase() })).kind, "reply");
    assert.deepEqual(plugin.fatal, []);
    assert.equal((await see(plugin)).kind, "dropped");
    assert.deepEqual(plugin.fatal, [
      `plugin/loop: Loop (192.0.2.1:40000 -> 127.0.0.1:53) detected for zone "example.org.": queries that this server forwards come back to it. Use resolvers in forward that do not query this server, instead of a resolv.conf with a loopback address. Query: "HINFO ${NAME}"`,
    ]);
    await see(plugin);
    assert.equal(plugin.fatal.length, 1);
    assert.equal(plugin.clock.pendingTimers, 0);
  });

  test("is logged with its IPv6 client", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port)]);
    await plugin.start();
    for (let count = 0; count < 3; count++) await see(plugin, { client: "2001:db8::1" });
    assert.match(plugin.fatal[0] ?? "", /^plugin\/loop: Loop \(\[2001:db8::1\]:40000 -> :53\)/);
  });

  test("is not detected from sightings of different attempts", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port)]);
    await plugin.start();
    for (let attempt = 0; attempt < 5; attempt++) {
      await see(plugin);
      await see(plugin);
      plugin.clock.advance(1_000);
    }
    assert.deepEqual(plugin.fatal, []);
    await plugin.stop();
  });

  test("is marked as an internal query, and other queries are not", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port)]);
    await plugin.start();
    const seen: boolean[] = [];
    const next: QuestionOptions["next"] = (query) => {
      seen.push(query.isOwn);
      return answering({})(query);
    };
    await see(plugin, { next });
    await see(plugin, { next, type: "A" });
    await see(plugin, { next, name: ZONE });
    assert.deepEqual(seen, [true, false, false]);
    await plugin.stop();
  });

  test("is not detected from other queries", async (context) => {
    const server = await peer(context);
    const plugin = pluginAt([listenerAt(server.port)]);
    await plugin.start();
    for (let count = 0; count < 5; count++) {
      await see(plugin, { type: "A" });
      await see(plugin, { name: "other.example.org." });
    }
    assert.deepEqual(plugin.fatal, []);
    await plugin.stop();
  });
});

test("a real loop: the server forwards its own probe to itself", async (context) => {
  const server = await peer(context);
  const plugin = pluginAt([listenerAt(server.port)]);
  const upstream = createSocket("udp4");
  // Messages that arrive at the server pass through the plugin, and return to the server.
  server.socket.on("message", (message: Buffer) => {
    void plugin.outcome({
      name: String(decodeMessage(message).questions[0]?.name),
      type: "HINFO",
      next: (query) => {
        upstream.send(message, server.port, "127.0.0.1");
        return query.fail();
      },
    });
  });
  await plugin.start();
  await until(() => plugin.fatal.length === 1);
  upstream.close();
});

describe("on several data planes", () => {
  test("the first one probes, and all of them count sightings", async (context) => {
    const server = await peer(context);
    let tell: (message: unknown) => Promise<void> | void = () =>
      assert.fail("the follower listens to nothing");
    const leader = pluginAt([listenerAt(server.port)], undefined, {
      ...feedToNobody,
      publish: (message) => void tell(structuredClone(message)),
    });
    const follower = pluginAt([listenerAt(server.port)], undefined, {
      ...feedToNobody,
      role: "follower",
      receive: (listener) => {
        tell = listener;
      },
    });
    await follower.start();
    await leader.start();
    const { answer } = await server.received();
    for (let attempt = 0; attempt < 3; attempt++) {
      await see(follower);
      await see(follower);
      // A new attempt: earlier sightings do not count.
      leader.clock.advance(1_000);
    }
    assert.deepEqual(follower.fatal, []);
    for (let sighting = 0; sighting < 3; sighting++) await see(follower);
    assert.match(
      follower.fatal.join(),
      /^plugin\/loop: Loop \(192\.0\.2\.1:40000 -> :53\) detected for zone "example\.org\."/,
    );
    leader.clock.advance(1_000);
    answer();
    await until(() => leader.clock.pendingTimers === 0);
    for (let sighting = 0; sighting < 5; sighting++) await see(follower);
    assert.equal(follower.fatal.length, 1);
    await leader.stop();
    await follower.stop();
  });
});

describe("refuses", () => {
  for (const [text, code, message] of [
    ["loop now", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after 'now'/],
    ["loop {\n deep\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'deep'/],
    ["loop\nloop", "PLUGIN_REPEATED", /can only be used once per Server Block/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(loop, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});
