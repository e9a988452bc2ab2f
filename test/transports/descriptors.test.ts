/** Few file descriptors and many clients: the silent ones lose their connections, and everybody else gets answers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { formatData } from "../../src/dns/resource-record.ts";
import { ask, exchangeUdp, queryOctets, TcpClient } from "../support/dns-client.ts";
import { namedPorts } from "../support/free-ports.ts";
import { projectRoot } from "../support/portolan.ts";
import { Program } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

const DESCRIPTORS = 200;
/** Silent connections to each listener, more than there are descriptors. */
const SILENT = 300;

/** Of those to DNS over TCP, how many stay open. */
const LEFT_OPEN = 18;

const skip = process.platform !== "linux";

for (const [way, env] of [
  ["by the batch", {}],
  ["by the datagram", { PORTOLAN_UDP: "dgram" }],
] as const) {
  describe(`with ${DESCRIPTORS} descriptors and UDP ${way}`, () => {
    test("silent connections cost no other client an answer, a probe or a file", { skip }, async () => {
      const portOf = await namedPorts();
      const folder = mkdtempSync(join(tmpdir(), "portolan-"));
      const [port, other, health] = [portOf("dns"), portOf("other"), portOf("health")];
      const [https, grpc] = [portOf("https"), portOf("grpc")];
      const hosts = join(folder, "hosts");
      writeFileSync(hosts, "192.0.2.1 named.test\n");
      // Two listeners on all addresses, an upstream (the server itself), probes, and a file that changes.
      writeFileSync(
        join(folder, "Corefile"),
        `.:${port} {
          health :${health}
          hosts ${hosts} {
            reload 100ms
            fallthrough
          }
          forward . 127.0.0.1:${other}
        }
        .:${other} https://.:${https} grpc://.:${grpc} {
          whoami
        }`,
      );
      const silent: Socket[] = [];
      const launcher = join(projectRoot, "bin", "portolan");
      const command = `ulimit -n ${DESCRIPTORS} && exec ${launcher} -conf ${join(folder, "Corefile")}`;
      await using program = new Program("sh", ["-c", command], { env });
      try {
        await program.waitForOutput(/^\w+\/\w+, node\d/m);
        const server = { address: "127.0.0.1", port };
        for (const target of [port, other, https, grpc, health]) {
          for (let n = 0; n < SILENT; n++) {
            const socket = connect(target, "127.0.0.1").on("error", () => undefined);
            // Else it would not see its end.
            silent.push(socket.resume());
            await once(socket, "connect");
          }
          // The kernel has accepted them all, the server may be behind. A connection that it accepts after the
          // client's closes the oldest.
          if (target === port || target === other)
            await untilTrue(async () => silent.filter((socket) => !socket.closed).length <= LEFT_OPEN);
          assert.equal((await ask(server, "elsewhere.test.")).rcode, 0);
          await using client = await TcpClient.connect(server);
          client.send(queryOctets("named.test"));
          assert.ok((await client.receive()) !== undefined);
          // A connection that is kept is silent, too.
          const headers = { connection: "close" };
          assert.equal((await fetch(`http://127.0.0.1:${health}/health`, { headers })).status, 200);
        }
        assert.ok(readdirSync(`/proc/${program.pid}/fd`).length < DESCRIPTORS);
        writeFileSync(hosts, "192.0.2.22 named.test\n");
        const deadline = performance.now() + 20_000;
        let address = "";
        while (address !== "192.0.2.22" && performance.now() < deadline)
          address = (await ask(server, "named.test.")).answer.map(formatData).join();
        assert.equal(address, "192.0.2.22");
        assert.ok((await exchangeUdp(server, queryOctets("elsewhere.test."))) !== undefined);
        assert.equal(program.hasEnded, false);
        const told = program.output.match(/closing the longest idle ones/g) ?? [];
        assert.equal(told.length, 1, program.describe());
      } finally {
        for (const socket of silent) socket.destroy();
        rmSync(folder, { recursive: true, force: true });
      }
    });
  });
}
