/** Out of file descriptors: who holds them loses some, and everybody else gets answers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { ask } from "./support/dns-client.ts";
import { namedPorts } from "./support/free-ports.ts";
import { projectRoot } from "./support/portolan.ts";
import { Program } from "./support/program.ts";

const DESCRIPTORS = 60;

for (const [way, env] of [
  ["by the batch", {}],
  ["by the datagram", { PORTOLAN_UDP: "dgram" }],
] as const) {
  describe(`without a free descriptor, UDP ${way}`, () => {
    test("is answered, and forwarding fails and comes back", {
      skip: process.platform !== "linux",
    }, async () => {
      const portOf = await namedPorts();
      const folder = mkdtempSync(join(tmpdir(), "portolan-"));
      const port = portOf("dns");
      const upstream = portOf("upstream");
      writeFileSync(
        join(folder, "Corefile"),
        `.:${port} {\n bind 127.0.0.1\n forward . 127.0.0.1:${upstream} {\n max_fails 0\n }\n}\n` +
          `here.test:${port} {\n bind 127.0.0.1\n whoami\n}\n.:${upstream} {\n bind 127.0.0.1\n whoami\n}\n`,
      );
      const sockets: Socket[] = [];
      const launcher = join(projectRoot, "bin", "portolan");
      const command = `ulimit -n ${DESCRIPTORS} && exec ${launcher} -conf ${join(folder, "Corefile")}`;
      await using program = new Program("sh", ["-c", command], { env });
      try {
        await program.waitForOutput(/^\w+\/\w+, node\d/m);
        const server = { address: "127.0.0.1", port };
        for (let n = 0; n < 2 * DESCRIPTORS; n++) {
          const socket = connect(port, "127.0.0.1").on("error", () => undefined);
          sockets.push(socket);
          await once(socket, "connect");
        }
        for (let n = 0; n < 20; n++) {
          assert.equal((await ask(server, "here.test.")).rcode, 0);
          // With an answer, or SERVFAIL: both are one.
          await ask(server, "elsewhere.test.");
        }
        assert.equal(program.hasEnded, false);
        assert.ok(readdirSync(`/proc/${program.pid}/fd`).length >= DESCRIPTORS);
        for (const socket of sockets) socket.destroy();
        let rcode = -1;
        const deadline = performance.now() + 20_000;
        while (rcode !== 0 && performance.now() < deadline)
          rcode = (await ask(server, "elsewhere.test.")).rcode;
        assert.equal(rcode, 0, program.describe());
      } finally {
        for (const socket of sockets) socket.destroy();
        rmSync(folder, { recursive: true, force: true });
      }
    });
  });
}
