/** A client that floods the server loses its own answers, and other clients keep theirs. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program } from "../support/program.ts";

const LAUNCHER = join(projectRoot, "bin", "portolan");
const script = (name: string): string => fileURLToPath(new URL(`../support/${name}`, import.meta.url));
const PORT = 5300;
const FETCH = `fetch("http://127.0.0.1:9153/metrics").then(async (response) => console.log(await response.text()))`;
const QUERIES = 500;
const INTERVAL = 10;

/** A server, and two clients with a link of their own each. */
class Harbour implements AsyncDisposable {
  readonly server: NetworkNamespace;
  readonly flooding: NetworkNamespace;
  readonly steady: NetworkNamespace;
  readonly portolan: Program;
  readonly #folder: string;

  private constructor(
    namespaces: readonly [NetworkNamespace, NetworkNamespace, NetworkNamespace],
    folder: string,
  ) {
    [this.server, this.flooding, this.steady] = namespaces;
    this.#folder = folder;
    const [command = "", ...args] = this.server.words(LAUNCHER, "-conf", join(folder, "Corefile"));
    this.portolan = new Program(command, args);
  }

  static async start(lines: string): Promise<Harbour> {
    const server = await NetworkNamespace.make();
    const flooding = await NetworkNamespace.make(server);
    const steady = await NetworkNamespace.make(server);
    for (const [client, name, network] of [
      [flooding, "left", "192.0.2"],
      [steady, "right", "198.51.100"],
    ] as const) {
      await server.ip(
        "link",
        "add",
        name,
        "type",
        "veth",
        "peer",
        "name",
        "sea",
        "netns",
        String(client.pid),
      );
      for (const [machine, device, last] of [
        [server, name, 1],
        [client, "sea", 2],
      ] as const) {
        await machine.ip("link", "set", device, "up");
        await machine.ip("addr", "add", `${network}.${last}/24`, "dev", device);
      }
    }
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    const corefile = `.:${PORT} {
      ${lines}
      prometheus 127.0.0.1:9153
      cache 30
      hosts /dev/null example.com {
        192.0.2.1 www.example.com
      }
    }\n`;
    writeFileSync(join(folder, "Corefile"), corefile);
    const harbour = new Harbour([server, flooding, steady], folder);
    await harbour.portolan.waitForOutput(/^\w+\/\w+, node\d/m);
    return harbour;
  }

  in(namespace: NetworkNamespace, file: string, ...args: readonly string[]): Program {
    const [command = "", ...words] = namespace.words(process.execPath, script(file), ...args);
    return new Program(command, words);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.portolan[Symbol.asyncDispose]();
    for (const namespace of [this.steady, this.flooding, this.server]) await namespace[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

test("beside a client that floods the server, one with 100 queries per second keeps its answers", {
  skip: (await NetworkNamespace.whyNot()) ?? false,
}, async (t) => {
  await using harbour = await Harbour.start("limit {\n all 1000\n action drop\n}");
  await using flood = harbour.in(
    harbour.flooding,
    "udp-flood-sender.ts",
    String(PORT),
    "answerable",
    "192.0.2.1",
  );
  await harbour.portolan.waitForOutput(/192\.0\.2\.2 exceeds its limit 'all'/);
  const words = ["198.51.100.1", String(PORT), "www.example.com.", String(QUERIES), String(INTERVAL)];
  await using steady = harbour.in(harbour.steady, "steady-client.ts", ...words);
  await steady.waitForOutput(/\n/);
  await flood.stop();
  const metrics = await harbour.server.run(process.execPath, "-p", FETCH);
  const dropped = Number(
    /^portolan_limit_exceeded_total\{class="all",result="dropped"\} (\d+)$/m.exec(metrics)?.[1],
  );
  t.diagnostic(
    `${flood.output.trim()} queries sent, ${dropped} of them dropped, sent and answered: ${steady.output.trim()}`,
  );
  const [sent, answered = 0, truncated] = steady.output.trim().split(" ").map(Number);
  assert.deepEqual([sent, truncated], [QUERIES, 0]);
  // On a busy machine the kernel drops some of anyone's datagrams before the server reads them.
  assert.ok(answered >= 0.9 * QUERIES, steady.output);
  assert.ok(dropped > 10_000, `${dropped}`);
});
