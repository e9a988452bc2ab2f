import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { SetupError } from "../../plugin/index.ts";
import { PluginTest } from "../../plugin/testing.ts";
import { HONEST, SILENT } from "../../upstream/fixtures/scripted-server.ts";
import { ForwardBench, forwarderOf } from "./fixtures/forward-bench.ts";
import forward from "./index.ts";

const bench = new ForwardBench();
afterEach(() => bench.stop());

let directory = "";
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "forward-"));
});
after(() => rm(directory, { recursive: true }));

async function file(name: string, ...lines: readonly string[]): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, `${lines.join("\n")}\n`);
  return path;
}

async function upstreams(text: string): Promise<string[]> {
  const test = await bench.start(text);
  return forwarderOf(test).upstreams.map(({ address }) => address.text);
}

async function failure(text: string): Promise<string> {
  try {
    await bench.start(text);
  } catch (error) {
    assert.ok(error instanceof SetupError, String(error));
    return error.message;
  }
  throw new Error(`started: ${text}`);
}

describe("the upstreams of forward", () => {
  it("come from files like resolv.conf", async () => {
    const path = await file(
      "resolv.conf",
      "nameserver 192.0.2.1",
      "nameserver fe80::1%lo",
      "search example.org",
    );
    assert.deepEqual(await upstreams(`forward . ${path} 192.0.2.2:54`), [
      "192.0.2.1:53",
      "[fe80::1%lo]:53",
      "192.0.2.2:54",
    ]);
  });

  it("are each taken once, in the order of the words", async () => {
    const path = await file("again.conf", "nameserver 192.0.2.2", "nameserver 2001:DB8:0::1");
    assert.deepEqual(
      await upstreams(`forward . 2001:db8::1 ${path} 192.0.2.2 192.0.2.2:53 192.0.2.2:54 dns://192.0.2.1`),
      ["[2001:db8::1]:53", "192.0.2.2:53", "192.0.2.2:54", "192.0.2.1:53"],
    );
  });

  it("may be more than 15 when a file names them", async () => {
    const path = await file(
      "many.conf",
      ...Array.from({ length: 20 }, (_, index) => `nameserver 192.0.2.${index}`),
    );
    assert.equal((await upstreams(`forward . ${path}`)).length, 20);
  });

  it("are missing when files list no server", async () => {
    const path = await file("empty.conf", "# nothing");
    assert.equal(
      await failure(`forward . ${path}`),
      `no valid upstream addresses found: no nameserver line in ${path}`,
    );
    assert.deepEqual(await upstreams(`forward . ${path} 192.0.2.1`), ["192.0.2.1:53"]);
  });

  it("are checked as they are resolved: a file without an address matters only if there is no other target", async () => {
    const path = await file("empty-too.conf", "");
    const named = await file("named.conf", "nameserver 192.0.2.2");
    const examined = async (words: string) => {
      for (const instance of PluginTest.of(forward, `forward . ${words}`).instances)
        await instance.examine?.();
    };
    for (const words of [`${path} 192.0.2.1`, `${path} ${named}`, `${path} ns.example`, named, "192.0.2.1"])
      await examined(words);
    for (const words of [path, `${path} ${path}`])
      await assert.rejects(examined(words), /no valid upstream addresses found: no nameserver line in/);
    await assert.rejects(examined(`${join(directory, "missing.conf")} 192.0.2.1`), /no such file/);
  });

  it("are checked in files whose names could be those of hosts", async () => {
    const folder = process.cwd();
    const examined = async (words: string) => {
      for (const instance of PluginTest.of(forward, `forward . ${words}`).instances)
        await instance.examine?.();
    };
    await file("empty.host.test", "");
    await file("named.host.test", "nameserver 192.0.2.2");
    process.chdir(directory);
    try {
      for (const words of ["named.host.test", "empty.host.test 192.0.2.1", "empty.host.test no.host.test"])
        await examined(words);
      await assert.rejects(examined("empty.host.test"), /no nameserver line in empty\.host\.test/);
    } finally {
      process.chdir(folder);
    }
  });

  it("cannot come from a missing file", async () => {
    const path = join(directory, "missing.conf");
    const message = await failure(`forward . ${path}`);
    assert.ok(
      message.startsWith(`not an IP address, file, or valid domain: "${path}" (no such file`),
      message,
    );
  });

  it("come from host names through the resolvers given, with their port", async () => {
    const resolver = await bench.server((asked) =>
      asked.message.questions[0]?.type === 1
        ? asked.answer({ answer: [`${asked.name} 60 IN A 192.0.2.7`, `${asked.name} 60 IN A 192.0.2.8`] })
        : asked.answer({ answer: [`${asked.name} 60 IN AAAA 2001:db8::7`] }),
    );
    assert.deepEqual(
      await upstreams(`forward . dns.example.org dns://dns.example.org:5353 192.0.2.8 {
        resolver ${resolver.text}
      }`),
      [
        "192.0.2.7:53",
        "192.0.2.8:53",
        "[2001:db8::7]:53",
        "192.0.2.7:5353",
        "192.0.2.8:5353",
        "[2001:db8::7]:5353",
      ],
    );
    assert.ok(resolver.asked.every(({ name }) => name === "dns.example.org."));
  });

  it("come from host names through the next resolver when one is silent", async () => {
    const silent = await bench.server(SILENT);
    const resolver = await bench.server((asked) =>
      asked.message.questions[0]?.type === 1 ? HONEST(asked) : asked.answer(),
    );
    const test = PluginTest.of(
      forward,
      `forward . dns.example.org {\nresolver ${silent.text} ${resolver.text}\n}`,
    );
    const started = test.start();
    for (let type = 1; type <= 2; type++) {
      await silent.receives(type);
      test.clock.advance(2_101);
    }
    await started;
    assert.deepEqual(
      forwarderOf(test).upstreams.map(({ address }) => address.text),
      ["192.0.2.1:53"],
    );
    await test.stop();
  });

  it("come from the machine's own names without a resolver", async () => {
    const found = await upstreams("forward . localhost:5353");
    assert.ok(found.includes("127.0.0.1:5353") || found.includes("[::1]:5353"), found.join());
  });

  it("cannot come from a name that does not exist", async () => {
    const resolver = await bench.server((asked) => asked.answer({ rcode: 3 }));
    assert.equal(
      await failure(`forward . nowhere.example {\nresolver ${resolver.text}\n}`),
      'failed to resolve "nowhere.example": A: the server answered NXDOMAIN; AAAA: the server answered NXDOMAIN',
    );
  });

  it("leave no socket of the lookup open", async () => {
    const resolver = await bench.server(HONEST);
    const test = await bench.start(`forward . dns.example.org {\nresolver ${resolver.text}\n}`);
    await test.stop();
    assert.equal(test.clock.pendingTimers, 0);
  });
});
