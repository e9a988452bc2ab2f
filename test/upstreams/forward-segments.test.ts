/** Queries at the same moment are sent as segments, and a network that drops segments loses few queries. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { NoForeignFunctions } from "../../src/runtime/linux/libc.ts";
import { linuxSockets } from "../../src/runtime/linux/linux-sockets.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { portolanWords } from "../support/portolan.ts";
import { Program } from "../support/program.ts";

const COREFILE = `.:5301 {
    forward . 127.0.0.1:5302
}
.:5302 {
    template ANY ANY {
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
}
`;
const ROUNDS = 20;
const TOGETHER = 32;
/** Octets of an IP packet: with one query of {@link CLIENT} it has 64, with two 100. */
const MORE_THAN_ONE = 80;

/** Sends this many queries at once, repeatedly, and prints the number of answers. */
const CLIENT = `const socket = require("node:dgram").createSocket("udp4");
const query = (id) => {
  const name = "name-" + String(id).padStart(5, "0");
  const labels = [name, "example"].map((label) => String.fromCharCode(label.length) + label).join("") + "\\0";
  const head = Buffer.from([id >> 8, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([head, Buffer.from(labels, "latin1"), Buffer.from([0, 1, 0, 1])]);
};
let answered = 0;
let round = 0;
const ask = () => {
  if (round === ${ROUNDS}) return end();
  for (let id = 0; id < ${TOGETHER}; id++) socket.send(query(round * ${TOGETHER} + id), 5301, "127.0.0.1");
  round++;
};
const end = () => { console.log(answered); socket.close(); };
socket.on("message", () => { if (++answered % ${TOGETHER} === 0) ask(); });
setTimeout(() => { console.log(answered); process.exit(); }, 20000).unref();
ask();`;

const skip =
  (await NetworkNamespace.whyNot()) ??
  ((await linuxSockets()) instanceof NoForeignFunctions ? "koffi is not available" : undefined) ??
  (await whyNoFilter()) ??
  false;

async function whyNoFilter(): Promise<string | undefined> {
  await using namespace = await NetworkNamespace.make();
  const failed = await namespace.run("nft", "list", "ruleset").catch(() => "failed");
  return failed === "failed" ? "'nft' does not work here" : undefined;
}

describe("queries in segments", { skip }, () => {
  /** @returns how many queries were answered, and how many packets with more than one query the filter counted */
  async function run(verdict: "accept" | "drop"): Promise<{ answered: number; segmented: number }> {
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    try {
      await using namespace = await NetworkNamespace.make();
      for (const words of [
        "add table ip way",
        "add chain ip way in { type filter hook input priority 0; }",
        `add rule ip way in udp dport 5302 meta length > ${MORE_THAN_ONE} counter ${verdict}`,
      ])
        await namespace.run("nft", words);
      writeFileSync(join(folder, "Corefile"), COREFILE);
      const [command = "", ...args] = namespace.words(...portolanWords("-conf", join(folder, "Corefile")));
      await using server = new Program(command, args);
      await server.waitForOutput(/^\w+\/\w+, node\d/m);
      const answered = Number(await namespace.run(process.execPath, "-e", CLIENT));
      const rules = await namespace.run("nft", "list", "ruleset");
      return { answered, segmented: Number(/counter packets (\d+)/.exec(rules)?.[1]) };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  test("leave together where they arrive", async () => {
    const { answered, segmented } = await run("accept");
    assert.equal(answered, ROUNDS * TOGETHER);
    assert.ok(segmented >= ROUNDS, `${segmented} packets with several queries`);
  });

  test("a network that loses segments without a word loses two queries, which are sent again", async () => {
    const { answered, segmented } = await run("drop");
    assert.equal(answered, ROUNDS * TOGETHER);
    assert.ok(segmented >= 1 && segmented <= 2, `${segmented} packets with several queries`);
  });
});
