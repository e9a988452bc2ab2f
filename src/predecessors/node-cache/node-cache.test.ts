/** The rules that node-cache leaves behind, with a netfilter that the test can pause. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { untilTrue } from "../../../test/support/until-true.ts";
import { MemoryLog } from "../../lib/logging/log.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { NodeCache } from "./node-cache.ts";
import { NodeNetwork } from "./node-network.ts";
import { CommandError } from "./run-command.ts";

/** Keeps the iptables rules in force. */
class Netfilter {
  readonly rules: string[] = [];
  /** Awaited before each new rule. */
  beforeInsert: () => Promise<void> = () => Promise.resolve();
  /** Exit code of all deletions, if they fail. */
  deletionCode: number | undefined;

  readonly run = async (command: string, words: readonly string[]): Promise<string> => {
    if (command !== "iptables") return "";
    const [, , action, ...rule] = words;
    const text = rule.join(" ");
    const index = this.rules.indexOf(text);
    if (action === "-I") {
      await this.beforeInsert();
      this.rules.push(text);
    } else if (action === "-D" && this.deletionCode !== undefined)
      throw new CommandError("iptables", this.deletionCode, "the lock is held");
    else if (index === -1) throw new CommandError("iptables", 1, "no such rule");
    else if (action === "-D") this.rules.splice(index, 1);
    return "";
  };
}

function makeCache(t: TestContext, netfilter: Netfilter) {
  const folder = mkdtempSync(join(tmpdir(), "portolan-node-cache-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "Corefile.base"), ".:53 {\n    whoami\n}\n");
  const clock = new FakeClock();
  const log = new MemoryLog({ debugEnabled: false });
  const localAddresses = ["169.254.20.10"];
  const network = new NodeNetwork({
    ...{ localAddresses, interfaceName: "nodelocaldns", healthPort: 8080, lease: 3, port: 53 },
    ...{ run: netfilter.run, owner: "node1" },
  });
  const cache = new NodeCache({
    ...{ localAddresses, network, setsUpInterface: false, setsUpRules: true, tearsDown: true },
    ...{
      syncInterval: 1_000,
      baseCorefile: join(folder, "Corefile.base"),
      corefile: join(folder, "Corefile"),
    },
    ...{ kubeDnsFolder: "", configPeriod: 1_000, clusterDns: undefined, port: 53, clock, log },
    metrics: { host: "127.0.0.1", port: 0 },
    changed: () => undefined,
  });
  const leave = async (): Promise<void> => {
    const left = cache.leave();
    let hasLeft = false;
    void left.then(() => {
      hasLeft = true;
    });
    await untilTrue(() => hasLeft, { between: () => clock.settle(100) });
    await cache.stop();
  };
  return { cache, clock, log, leave };
}

test("an instance that stops while it adds its first rules leaves none behind", async (t) => {
  const netfilter = new Netfilter();
  const inserting = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  netfilter.beforeInsert = () => {
    inserting.resolve();
    return goOn.promise;
  };
  const { cache, clock, leave } = makeCache(t, netfilter);
  await cache.prepare();
  const serving = cache.serve();
  await inserting.promise;
  const left = leave();
  await clock.settle(1_000);
  goOn.resolve();
  await Promise.all([serving, left]);
  assert.deepEqual(netfilter.rules, []);
  assert.equal(clock.pendingTimers, 0);
});

test("rules that cannot be removed are logged, and rules removed by another instance are not", async (t) => {
  for (const [code, told] of [
    [4, 1],
    [1, 0],
  ] as const) {
    const netfilter = new Netfilter();
    const { cache, log, leave } = makeCache(t, netfilter);
    await cache.prepare();
    await cache.serve();
    assert.equal(netfilter.rules.length, 4);
    netfilter.deletionCode = code;
    await leave();
    assert.equal(log.lines.filter((line) => line.includes("the lock is held")).length, told);
  }
});
