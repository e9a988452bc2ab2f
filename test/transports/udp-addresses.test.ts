/** A listener on all addresses answers from the queried address, however the machine got that address. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program } from "../support/program.ts";

const LINK_LOCAL = "fe80::1";
const LAUNCHER = join(projectRoot, "bin", "portolan");

/** Two machines with a link between them; on the one called `server`, Portolan listens on port 53. */
class TwoMachines implements AsyncDisposable {
  readonly server: NetworkNamespace;
  readonly client: NetworkNamespace;
  readonly portolan: Program;
  readonly #folder: string;

  private constructor(server: NetworkNamespace, client: NetworkNamespace, folder: string) {
    this.server = server;
    this.client = client;
    this.#folder = folder;
    const [command = "", ...args] = server.words(LAUNCHER, "-conf", join(folder, "Corefile"));
    this.portolan = new Program(command, args);
  }

  static async start(corefile: string): Promise<TwoMachines> {
    const server = await NetworkNamespace.make();
    const client = await NetworkNamespace.make(server);
    await server.ip(
      "link",
      "add",
      "port",
      "type",
      "veth",
      "peer",
      "name",
      "starboard",
      "netns",
      String(client.pid),
    );
    for (const [machine, link, addresses] of [
      [server, "port", ["192.0.2.1/24", "192.0.2.9/24", "2001:db8:1::1/64", `${LINK_LOCAL}/64`]],
      [client, "starboard", ["192.0.2.2/24", "2001:db8:1::2/64", "fe80::2/64"]],
    ] as const) {
      // Addresses that are there at once, and no others.
      await machine.ip("link", "set", link, "addrgenmode", "none");
      await machine.ip("link", "set", link, "up");
      for (const address of addresses) {
        const brd = address.includes(":") ? ["nodad"] : ["brd", "+"];
        await machine.ip("addr", "add", address, ...brd, "dev", link);
      }
    }
    await server.ip("addr", "add", "198.51.100.53/32", "dev", "lo");
    await server.ip("addr", "add", "2001:db8:53::53/128", "dev", "lo");
    await client.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.1");
    await client.ip("-6", "route", "add", "2001:db8:53::/48", "via", "2001:db8:1::1");
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    writeFileSync(join(folder, "Corefile"), corefile);
    const machines = new TwoMachines(server, client, folder);
    await machines.portolan.waitForOutput(/^\w+\/\w+, node\d/m);
    return machines;
  }

  /** dig takes no reply from another address than it asked. */
  async ask(from: "server" | "client", address: string): Promise<void> {
    const words = ["dig", `@${address}`, "+tries=1", "+time=10", "example.org"];
    assert.match(await this[from].run(...words), /status: NOERROR/);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.portolan[Symbol.asyncDispose]();
    await this.client[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const ASKED = [
  ["server", "127.0.0.1"],
  ["server", "127.0.0.2"],
  ["server", "198.51.100.53"],
  ["server", "192.0.2.1"],
  ["server", "192.0.2.9"],
  ["server", "::1"],
  ["server", "2001:db8:53::53"],
  ["client", "192.0.2.1"],
  ["client", "192.0.2.9"],
  ["client", "198.51.100.53"],
  ["client", "2001:db8:1::1"],
  ["client", "2001:db8:53::53"],
] as const;

/** Asks at an address of many, and prints the one that answers. */
const ASK_ALL = `
const socket = require("node:dgram").createSocket("udp4");
setTimeout(() => process.exit(1), 20000).unref();
socket.bind(0, () => {
  socket.setBroadcast(true);
  socket.send(Buffer.from("000101000001000000000000076578616d706c65036f72670000010001", "hex"), 53, "192.0.2.255");
});
socket.on("message", (_, from) => { console.log(from.address); socket.close(); });
`;

describe("replies leave from the address asked", { skip: (await NetworkNamespace.whyNot()) ?? false }, () => {
  for (const [threads, line] of [
    ["one thread", ""],
    ["two threads", "multisocket 2"],
  ] as const) {
    test(`on ${threads}`, async () => {
      await using machines = await TwoMachines.start(`. {\n whoami\n ${line}\n}\n`);
      await Promise.all(ASKED.map(([from, address]) => machines.ask(from, address)));

      // One that comes while it runs.
      await machines.server.ip("addr", "add", "198.51.100.54/32", "dev", "lo");
      await Promise.all([machines.ask("server", "198.51.100.54"), machines.ask("client", "198.51.100.54")]);

      // A link-local address means nothing without its link.
      await machines.ask("client", `${LINK_LOCAL}%starboard`);

      // Nothing can leave from a broadcast address: the kernel chooses.
      assert.match(await machines.client.run(process.execPath, "-e", ASK_ALL), /^192\.0\.2\.[19]\n$/);

      assert.doesNotMatch(machines.portolan.output, /\[ERROR\]/);
    });
  }
});
