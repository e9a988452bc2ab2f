/** Replies reach clients behind links that take less than others, large ones as fragments. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program } from "../support/program.ts";

const LAUNCHER = join(projectRoot, "bin", "portolan");

/** Names whose text has this many octets; the reply has some 60 more. */
const TEXTS = { small: 100, middle: 420, large: 1_100 } as const;

/** Behind some small replies, replies are kept whole again: see `WayOut`. */
const NAMES_IN_TURN = ["small", "middle", "large", ...Array(6).fill("small"), "middle", "large"] as const;

/** A server, a router, and a client behind it. */
class Path implements AsyncDisposable {
  readonly server: NetworkNamespace;
  readonly router: NetworkNamespace;
  readonly client: NetworkNamespace;
  readonly portolan: Program;
  readonly #folder: string;

  private constructor(
    server: NetworkNamespace,
    router: NetworkNamespace,
    client: NetworkNamespace,
    folder: string,
  ) {
    this.server = server;
    this.router = router;
    this.client = client;
    this.#folder = folder;
    const [command = "", ...args] = server.words(LAUNCHER, "-conf", join(folder, "Corefile"));
    this.portolan = new Program(command, args);
  }

  static async start(lines: string): Promise<Path> {
    const server = await NetworkNamespace.make();
    const router = await NetworkNamespace.make(server);
    const client = await NetworkNamespace.make(server);
    const link = (from: NetworkNamespace, name: string, peer: string, to: NetworkNamespace) =>
      from.ip(...["link", "add", name, "type", "veth", "peer", "name", peer], ...["netns", String(to.pid)]);
    await link(server, "port", "quay", router);
    await link(router, "canal", "starboard", client);
    for (const [machine, name, address] of [
      [server, "port", "192.0.2.1/24"],
      [router, "quay", "192.0.2.254/24"],
      [router, "canal", "198.51.100.254/24"],
      [client, "starboard", "198.51.100.2/24"],
    ] as const) {
      await machine.ip("link", "set", name, "up");
      await machine.ip("addr", "add", address, "dev", name);
    }
    await router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward");
    await server.ip("route", "add", "default", "via", "192.0.2.254");
    await client.ip("route", "add", "default", "via", "198.51.100.254");
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    const records = Object.entries(TEXTS).map(([name, octets]) => {
      const strings = Array.from({ length: Math.ceil(octets / 100) }, () => `"${"x".repeat(99)}"`);
      return `${name} 60 IN TXT ${strings.join(" ")}`;
    });
    const zone = [
      "@ 60 IN SOA ns hostmaster 1 60 60 60 60",
      "@ 60 IN NS ns",
      "ns 60 IN A 192.0.2.1",
      ...records,
    ];
    writeFileSync(join(folder, "zone"), `${zone.join("\n")}\n`);
    writeFileSync(join(folder, "Corefile"), `example.org {\n ${lines}\n file ${join(folder, "zone")}\n}\n`);
    const path = new Path(server, router, client, folder);
    await path.portolan.waitForOutput(/^\w+\/\w+, node\d/m);
    return path;
  }

  /** @returns how often it had to be asked for */
  async ask(name: keyof typeof TEXTS): Promise<number> {
    const words = ["dig", "@192.0.2.1", "+tries=5", "+time=1", "+notcp", "+ignore", "+bufsize=1400"];
    const output = await this.client.run(...words, `${name}.example.org`, "TXT");
    assert.match(output, /status: NOERROR/);
    assert.doesNotMatch(output, /flags:[^;]* tc/);
    assert.ok(output.includes("x".repeat(99)));
    return 1 + output.split("timed out").length - 1;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.portolan[Symbol.asyncDispose]();
    await this.client[Symbol.asyncDispose]();
    await this.router[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

describe("replies over narrow paths", { skip: (await NetworkNamespace.whyNot()) ?? false }, () => {
  for (const [name, lines] of [
    ["from all addresses", ""],
    ["from one address", "bind 192.0.2.1"],
    ["from one address, on two threads", "bind 192.0.2.1\n multisocket 2"],
  ] as const) {
    test(`behind a router: ${name}`, async () => {
      await using path = await Path.start(lines);
      await path.router.ip("link", "set", "canal", "mtu", "600");
      await path.ask("small");
      // The first one is too much for the path: the router says so, and the next one leaves as fragments.
      await path.ask("large");
      for (const each of NAMES_IN_TURN) assert.equal(await path.ask(each), 1);
      assert.doesNotMatch(path.portolan.output, /\[ERROR\]/);
    });

    test(`on the server's own link, which takes next to nothing: ${name}`, async () => {
      await using path = await Path.start(lines);
      await path.server.ip("link", "set", "port", "mtu", "300");
      for (const each of NAMES_IN_TURN) assert.equal(await path.ask(each), 1);
      assert.doesNotMatch(path.portolan.output, /\[ERROR\]/);
    });
  }
});
