import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { untilTrue } from "../../test/support/until-true.ts";
import { memoryHost } from "../corefile/host.ts";
import {
  A,
  decodeMessage,
  encodeMessage,
  type Message,
  makeQuery,
  Name,
  Rcode,
  RecordType,
} from "../dns/index.ts";
import { MemoryLog } from "../lib/logging/log.ts";
import { MetricsRegistry } from "../lib/metrics/metrics.ts";
import { SystemClock } from "../lib/time/clock.ts";
import { required } from "../plugin/config/arguments.ts";
import { directive } from "../plugin/config/schema.ts";
import { text } from "../plugin/config/values.ts";
import { definePlugin, type PluginDefinition } from "../plugin/contract/define-plugin.ts";
import type { ServerControl } from "../plugin/contract/site.ts";
import { makeTestQuery } from "../plugin/testing.ts";
import { systemRandom, thisMachine } from "./configuration/machine.ts";
import { PluginRegistry } from "./configuration/plugin-registry.ts";
import { Server } from "./server.ts";

/** Answers every A query with its address; `slow` ones wait for `release`. */
function answerPlugin(gate: Gate): PluginDefinition<{ address: string }> {
  return definePlugin({
    name: "answer",
    summary: "for this test",
    config: directive({ args: { address: required(text()) } }),
    create: ({ address }, site) => ({
      started: () => {
        gate.control = site.control;
      },
      handle(query) {
        const reply = query.reply({ authoritative: true, answer: [A.create(query.name, 60, { address })] });
        if (query.name.labelText(0) === "slow") return gate.release.then(() => reply);
        if (query.name.labelText(0) === "throw") throw new Error("as asked");
        if (query.name.labelText(0) === "reject") return Promise.reject(new Error("as asked"));
        if (query.name.labelText(0) === "rubbish") return JSON.parse("{}");
        return reply;
      },
    }),
  });
}

const startRefuser = definePlugin({
  name: "refuse",
  summary: "for this test",
  config: directive({}),
  create: () => ({
    start() {
      throw new Error("cannot start, as asked");
    },
  }),
});

/** Is warm when the test says so. */
function warmPlugin(gate: { readonly warm: PromiseWithResolvers<void> }): PluginDefinition<unknown> {
  return definePlugin({
    name: "warm",
    summary: "for this test",
    config: directive({}),
    create: () => ({ warmUp: () => gate.warm.promise }),
  });
}

/** Has started when the test says so, and says when it was stopped. */
function lateStarter(
  gate: { readonly warm: PromiseWithResolvers<void> },
  stopped: string[],
): PluginDefinition<unknown> {
  return definePlugin({
    name: "late",
    summary: "for this test",
    config: directive({}),
    create: () => ({ start: () => gate.warm.promise, stop: () => void stopped.push("late") }),
  });
}

interface Gate {
  release: Promise<void>;
  warm: PromiseWithResolvers<void>;
  control?: ServerControl;
}

interface Running {
  /** How many addresses were open whenever the server was about to listen. */
  readonly beforeListening: readonly number[];
  readonly stopped: readonly string[];
  readonly server: Server;
  readonly log: MemoryLog;
  readonly source: { text: string };
  readonly gate: Gate;
  /** Of the configuration in force. */
  control(): ServerControl;
  port(label?: string): number;
  [Symbol.asyncDispose](): Promise<void>;
}

async function running(corefile: string): Promise<Running> {
  const gate: Gate = { release: Promise.resolve(), warm: Promise.withResolvers<void>() };
  const stopped: string[] = [];
  const beforeListening: number[] = [];
  const plugins: Readonly<Record<string, unknown>> = {
    late: lateStarter(gate, stopped),
    answer: answerPlugin(gate),
    refuse: startRefuser,
    warm: warmPlugin(gate),
  };
  const source = { text: corefile };
  const log = new MemoryLog();
  const server = new Server({
    source: () => ({ text: source.text, file: "Corefile" }),
    registry: new PluginRegistry(
      Object.keys(plugins).map((name) => ({ name, module: name })),
      { load: async ({ name }) => plugins[name] },
    ),
    host: memoryHost(),
    machine: thisMachine({}),
    clock: new SystemClock(),
    random: systemRandom(),
    log,
    metrics: new MetricsRegistry(),
    version: "0.0.0",
    beforeListening: async () => void beforeListening.push(server.addresses.length),
  });
  await server.start();
  return {
    beforeListening,
    stopped,
    server,
    log,
    source,
    gate,
    control() {
      assert.ok(gate.control !== undefined);
      return gate.control;
    },
    port: (label) => {
      const found = server.addresses.find((address) => label === undefined || address.label === label);
      assert.ok(found !== undefined);
      return found.port;
    },
    [Symbol.asyncDispose]: async () => {
      await server.stop();
    },
  };
}

function askUdp(port: number, bytes: Uint8Array, wait = 20_000): Promise<Uint8Array | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    const timer = setTimeout(() => finish(undefined), wait);
    const finish = (reply: Uint8Array | undefined): void => {
      clearTimeout(timer);
      socket.close();
      resolve(reply);
    };
    socket.once("message", finish);
    socket.send(bytes, port, "127.0.0.1");
  });
}

async function ask(
  port: number,
  name: string,
  type: number = RecordType.A,
  edns?: { udpSize: number },
): Promise<Message> {
  const query = makeQuery(
    { name: Name.parse(name), type },
    { id: 99, ...(edns && { edns: { version: 0, dnssecOk: false, options: [], ...edns } }) },
  );
  const reply = await askUdp(port, encodeMessage(query));
  assert.ok(reply !== undefined, `no answer for ${name}`);
  return decodeMessage(reply);
}

function addressOf(message: Message): string | undefined {
  const [record] = message.answer;
  return record !== undefined && A.is(record) ? record.data.address : undefined;
}

test("what would keep queries waiting is done before the first start listens, and not in a reload", async () => {
  await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
  await app.server.reload();
  assert.deepEqual(app.beforeListening, [0]);
});

describe("zone choice", () => {
  test("the zones of a block have their witnesses in common, as answers of many zones are remembered together", async () => {
    await using host = await running("one.example:0 two.example:0 {\n answer 192.0.2.1\n}\n");
    const [address] = host.server.addresses;
    const routes = host.server.listener(address?.label ?? "")?.service.routes;
    const [one, two] = ["one.example.", "two.example."].map((name) => routes?.find(makeTestQuery({ name })));
    assert.ok(one !== undefined && two !== undefined && one !== two);
    assert.ok(one.witnesses !== undefined);
    assert.equal(one.witnesses, two.witnesses);
  });

  test("the longest zone answers, DS goes to the shortest, the rest is refused", async () => {
    await using app = await running(
      "example.org:0 {\n answer 192.0.2.1\n}\nsub.example.org:0 {\n answer 192.0.2.2\n}\n",
    );
    // Both keys ask for port 0 and so share one listener.
    assert.equal(app.server.addresses.length, 1);
    const port = app.port();
    assert.equal(addressOf(await ask(port, "www.example.org.")), "192.0.2.1");
    assert.equal(addressOf(await ask(port, "www.SUB.example.org.")), "192.0.2.2");
    assert.equal(addressOf(await ask(port, "sub.example.org.", RecordType.DS)), "192.0.2.1");
    const refused = await ask(port, "example.com.");
    assert.equal(refused.rcode, Rcode.REFUSED);
    assert.equal(refused.questions.length, 1);
  });

  test("a block without plugins refuses", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n}\nempty.:0 {\n}\n");
    assert.equal((await ask(app.port(), "a.empty.")).rcode, Rcode.REFUSED);
    assert.equal(addressOf(await ask(app.port(), "a.")), "192.0.2.1");
  });
});

describe("admission", () => {
  const good = encodeMessage(makeQuery({ name: Name.parse("a."), type: RecordType.A }, { id: 7 }));
  const changed = (change: (bytes: Uint8Array) => unknown): Uint8Array => {
    const bytes = good.slice();
    change(bytes);
    return bytes;
  };
  const cases: readonly (readonly [string, Uint8Array, number | undefined])[] = [
    ["too short", good.slice(0, 11), undefined],
    ["a reply", changed((b) => b.set([0x80], 2)), undefined],
    ["an update", changed((b) => b.set([0x28], 2)), Rcode.NOTIMP],
    ["two questions", changed((b) => b.set([2], 5)), Rcode.FORMERR],
    ["three additional records", changed((b) => b.set([3], 11)), Rcode.FORMERR],
    ["a question cut off", good.slice(0, good.length - 1), Rcode.FORMERR],
    ["octets too many", Uint8Array.of(...good, 0), Rcode.NOERROR],
    ["another class", changed((b) => b.set([3], good.length - 1)), Rcode.REFUSED],
  ];
  for (const [what, bytes, rcode] of cases) {
    test(what, async () => {
      await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
      const reply = await askUdp(app.port(), bytes, rcode === undefined ? 150 : 20_000);
      assert.equal(reply === undefined ? undefined : decodeMessage(reply).rcode, rcode);
      assert.equal(addressOf(await ask(app.port(), "still.alive.")), "192.0.2.1");
    });
  }

  test("another EDNS version is BADVERS", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
    const query = makeQuery(
      { name: Name.root, type: 1 },
      { edns: { udpSize: 1232, version: 1, dnssecOk: false, options: [] } },
    );
    const bytes = await askUdp(app.port(), encodeMessage(query));
    assert.ok(bytes !== undefined);
    const reply = decodeMessage(bytes);
    assert.equal(reply.rcode, Rcode.BADVERS);
    assert.equal(reply.edns?.version, 0);
  });
});

describe("plugins that fail", () => {
  for (const name of ["throw", "reject", "rubbish"]) {
    test(`${name} is SERVFAIL for that query alone`, async () => {
      await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
      assert.equal((await ask(app.port(), `${name}.`)).rcode, Rcode.SERVFAIL);
      assert.match(app.log.lines.join("\n"), /Recovered from panic in server: "dns:\/\/:0" plugin\/answer/);
      assert.equal(addressOf(await ask(app.port(), "a.")), "192.0.2.1");
    });
  }
});

describe("reload", () => {
  test("changes the answers, keeps the socket, and lets old queries finish", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
    const port = app.port();
    const { promise, resolve } = Promise.withResolvers<void>();
    app.gate.release = promise;
    const slow = ask(port, "slow.");
    await ask(port, "a.");
    app.source.text = ".:0 {\n answer 192.0.2.9\n}\n";
    await app.server.reload();
    assert.equal(app.port(), port);
    assert.equal(addressOf(await ask(port, "a.")), "192.0.2.9");
    resolve();
    assert.equal(addressOf(await slow), "192.0.2.1");
  });

  test("a Corefile that does not parse, or a plugin that does not start, changes nothing", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
    const port = app.port();
    for (const text of [".:0 {\n answre 192.0.2.2\n}\n", ".:0 {\n answer 192.0.2.2\n refuse\n}\n", ".:0 {"]) {
      app.source.text = text;
      await assert.rejects(app.server.reload());
      assert.equal(addressOf(await ask(port, "a.")), "192.0.2.1");
    }
    const lines = app.log.lines.join("\n");
    assert.match(lines, /\[ERROR\] Restart failed: \S.*:1:5: error: Unexpected EOF/);
    assert.match(lines, /\n\[ERROR\] {3}1 \| \.:0 \{\n/);
    assert.doesNotMatch(lines, /\\n/);
    // Each says which configuration goes on.
    assert.equal(
      lines.match(/\[WARNING\] the configuration in force since \d{4}-\S+Z stays in force$/gm)?.length,
      3,
    );
  });

  test("what the watch on the Corefile cannot read is shown with its place, until the Corefile is right again", async () => {
    const right = ".:0 {\n answer 192.0.2.1\n}\n";
    await using app = await running(right);
    const refused = () => app.control().view?.configuration().refused;
    const look = () => app.control().readConfiguration();
    await look();
    assert.equal(refused(), undefined);
    app.source.text = ".:0 {\n answer 192.0.2.1\n answre\n}\n";
    await assert.rejects(look());
    const first = refused();
    assert.deepEqual(
      first?.diagnostics.map(({ severity, line, column }) => [severity, line, column]),
      [["error", 3, 2]],
    );
    await assert.rejects(look());
    assert.equal(refused(), first);
    // Another fault is another refusal; what parses and is not in force yet ends nothing.
    app.source.text = ".:0 {";
    await assert.rejects(look());
    assert.notEqual(refused(), first);
    app.source.text = ".:0 {\n answer 192.0.2.2\n refuse\n}\n";
    await assert.rejects(app.server.reload());
    await look();
    assert.notEqual(refused(), undefined);
    app.source.text = right;
    await look();
    assert.equal(refused(), undefined);
  });

  test("waits until the plugins are warm, which a start does not, and a stop ends that", async () => {
    const app = await running(".:0 {\n answer 192.0.2.1\n warm\n}\n");
    const port = app.port();
    assert.equal(addressOf(await ask(port, "a.")), "192.0.2.1");
    app.source.text = ".:0 {\n answer 192.0.2.2\n warm\n}\n";
    const reloaded = app.server.reload();
    assert.equal(addressOf(await ask(port, "a.")), "192.0.2.1");
    app.gate.warm.resolve();
    await reloaded;
    assert.equal(addressOf(await ask(port, "a.")), "192.0.2.2");

    app.gate.warm = Promise.withResolvers();
    const givenUp = app.server.reload();
    assert.equal(addressOf(await ask(port, "a.")), "192.0.2.2");
    await app.server.stop();
    await givenUp;
    assert.equal(app.log.lines.at(-1), "[INFO] Reload abandoned: the server is stopping");
  });

  test("a stop waits for no plugin that does not come to start, which is stopped when it has", async () => {
    const app = await running(".:0 {\n answer 192.0.2.1\n}\n");
    app.source.text = ".:0 {\n answer 192.0.2.2\n late\n}\n";
    const reload = app.server.reload();
    await new Promise(setImmediate);
    await app.server.stop();
    await reload;
    assert.ok(app.log.lines.includes("[INFO] Reload abandoned: the server is stopping"));
    assert.deepEqual(app.stopped, []);
    app.gate.warm.resolve();
    await untilTrue(() => app.stopped.length > 0);
  });

  test("goes on where a plugin cannot get warm, and says so", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n warm\n}\n");
    app.gate.warm.reject(new Error("too cold"));
    await app.server.reload();
    assert.ok(app.log.lines.includes("[ERROR] plugin/warm: too cold"), app.log.lines.join("\n"));
  });

  test("a new port that is taken changes nothing", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
    const taken = createSocket("udp6");
    await new Promise<void>((resolve) => taken.bind(0, () => resolve()));
    app.source.text = `.:0 {\n answer 192.0.2.2\n}\n.:${taken.address().port} {\n answer 192.0.2.3\n}\n`;
    try {
      // TCP comes first, and its port of that number may be taken by chance as well.
      await assert.rejects(app.server.reload(), /cannot listen on (udp|tcp) .*: the address is in use/);
      assert.equal(addressOf(await ask(app.port(), "a.")), "192.0.2.1");
    } finally {
      taken.close();
    }
  });
});

describe("TCP", () => {
  const framed = (name: string, id: number): Buffer => {
    const message = encodeMessage(makeQuery({ name: Name.parse(name), type: RecordType.A }, { id }));
    return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]);
  };

  test("pipelined queries are answered, the slow one last", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
    const { promise, resolve } = Promise.withResolvers<void>();
    app.gate.release = promise;
    const socket = connect(app.port(), "127.0.0.1").on("error", () => undefined);
    const ids: number[] = [];
    let pending = Buffer.alloc(0);
    const three = new Promise<void>((done) => {
      socket.on("data", (data) => {
        pending = Buffer.concat([pending, data]);
        while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
          ids.push(pending.readUInt16BE(2));
          pending = pending.subarray(2 + pending.readUInt16BE(0));
        }
        if (ids.length === 2) resolve();
        if (ids.length === 3) done();
      });
    });
    // Split at odd places: the framing must hold.
    const bytes = Buffer.concat([framed("slow.", 1), framed("a.", 2), framed("b.", 3)]);
    for (const octet of bytes.subarray(0, 5)) {
      socket.write(Uint8Array.of(octet));
      await sleep(1);
    }
    socket.write(bytes.subarray(5));
    await three;
    assert.deepEqual(ids, [2, 3, 1]);
    socket.destroy();
  });

  test("a client that closes its side still gets its answer", async () => {
    await using app = await running(".:0 {\n answer 192.0.2.1\n}\n");
    const socket = connect(app.port(), "127.0.0.1").on("error", () => undefined);
    socket.end(framed("a.", 5));
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk as Buffer);
    const all = Buffer.concat(chunks);
    assert.equal(decodeMessage(all.subarray(2)).id, 5);
  });
});
