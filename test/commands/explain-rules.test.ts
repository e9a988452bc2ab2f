/** `explain` gives the right reason for each question of the rules of Kubernetes' DNS, whether it has an answer or not. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { nodeHost } from "../../src/corefile/node-host.ts";
import { parseRecordType } from "../../src/dns/type-names.ts";
import { MemoryLog } from "../../src/lib/logging/log.ts";
import { SystemClock } from "../../src/lib/time/clock.ts";
import type { Explanation } from "../../src/plugin/contract/explanation.ts";
import { systemRandom, thisMachine } from "../../src/server/configuration/machine.ts";
import { PluginRegistry } from "../../src/server/configuration/plugin-registry.ts";
import { OfflineServer } from "../../src/server/offline-server.ts";
import { REASONS } from "../fixtures/kubernetes/reasons.ts";
import { type RuleCase, wholeOf } from "../fixtures/kubernetes/rule-case.ts";
import { RULE_GROUPS } from "../fixtures/kubernetes/rules.ts";
import { OutsideWorld, ruleBlock } from "../support/kubernetes-rules.ts";
import { projectRoot } from "../support/portolan.ts";

const FIXTURE = join(projectRoot, "test", "fixtures", "kubernetes");

describe("explain", () => {
  let outside: OutsideWorld;
  let server: OfflineServer;

  before(async () => {
    outside = await OutsideWorld.start();
    // Nothing listens: the ports tell the groups apart.
    const text = RULE_GROUPS.map((group, at) =>
      ruleBlock(group, `manifests ${FIXTURE}`, portOf(at), outside),
    );
    server = await OfflineServer.start({
      source: { text: text.join(""), file: "Corefile" },
      registry: await PluginRegistry.builtIn(),
      host: nodeHost,
      machine: thisMachine({}),
      clock: new SystemClock(),
      random: systemRandom(),
      log: new MemoryLog(),
    });
  });
  after(async () => {
    await server.stop();
    await outside[Symbol.asyncDispose]();
  });

  for (const [at, { title, cases }] of RULE_GROUPS.entries()) {
    const reasons = REASONS[title] ?? {};
    for (const { name, type, expected } of cases) {
      it(`${title}: ${name} ${type}`, async () => {
        const explanation = await server.explain({
          name: name.endsWith(".") ? name : `${name}.cluster.local.`,
          type: parseRecordType(type) ?? assert.fail(`no type ${type}`),
          listener: `dns://127.0.0.1:${portOf(at)}`,
        });
        const [step] = explanation.steps;
        assert.equal(step?.plugin, "kubernetes");
        assert.equal(step.notes.map(({ text }) => text).join("; "), reasons[`${name} ${type}`]);
        assert.equal(resultOf(explanation), resultWanted(expected));
      });
    }
  }

  it("knows no reason without a question", () => {
    const questions = RULE_GROUPS.flatMap(({ title, cases }) =>
      cases.map(({ name, type }) => `${title}: ${name} ${type}`),
    );
    const known = Object.entries(REASONS).flatMap(([title, group]) =>
      Object.keys(group).map((question) => `${title}: ${question}`),
    );
    assert.deepEqual(new Set(known), new Set(questions));
  });
});

function portOf(group: number): number {
  return 10_000 + group;
}

function resultOf({ message }: Explanation): string {
  if (message?.rcode !== "NOERROR") return message?.rcode ?? "nothing";
  return message.answer.length === 0 ? "NODATA" : "NOERROR";
}

function resultWanted(expected: RuleCase["expected"]): string {
  if (expected === "REFUSED") return "REFUSED";
  const { rcode = "NOERROR", answer } = wholeOf(expected);
  return rcode === "NOERROR" && answer.length === 0 ? "NODATA" : rcode;
}
