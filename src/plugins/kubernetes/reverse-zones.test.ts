import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Rcode, rcodeName } from "../../dns/index.ts";
import type { Next } from "../../plugin/index.ts";
import { NoNextPluginError } from "../../plugin/query/outcome.ts";
import { answering, PluginTest, records } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

function service(name: string, ip: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Service",
    metadata: { namespace: "shop", name },
    spec: { clusterIP: ip, clusterIPs: [ip], ports: [{ port: 80, protocol: "TCP" }] },
  });
}

describe("names between a reverse zone and an address", () => {
  let folder = "";
  const running: PluginTest<unknown>[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "portolan-reverse-"));
    const services = [service("web", "10.96.0.1"), service("six", "fd00:0:0:12::1")];
    await writeFile(join(folder, "services.yaml"), services.join("\n---\n"));
  });
  after(async () => {
    for (const plugin of running) await plugin.stop();
    await rm(folder, { recursive: true });
  });

  async function start(options = "") {
    const text = `kubernetes cluster.local in-addr.arpa ip6.arpa {\n manifests ${folder}\n${options}\n}`;
    const plugin = PluginTest.of(kubernetes, text);
    running.push(plugin);
    await plugin.start();
    return plugin;
  }

  const rcodes: readonly (readonly [name: string, rcode: string])[] = [
    ["1.0.96.10.in-addr.arpa.", "NOERROR"],
    ["0.96.10.in-addr.arpa.", "NOERROR"],
    ["96.10.in-addr.arpa.", "NOERROR"],
    ["10.in-addr.arpa.", "NOERROR"],
    ["2.1.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.", "NOERROR"],
    ["d.f.ip6.arpa.", "NOERROR"],
    ["dns.in-addr.arpa.", "NOERROR"],
    ["1.96.10.in-addr.arpa.", "NXDOMAIN"],
    ["11.in-addr.arpa.", "NXDOMAIN"],
    ["3.1.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.", "NXDOMAIN"],
    ["010.in-addr.arpa.", "NXDOMAIN"],
    ["x.96.10.in-addr.arpa.", "NXDOMAIN"],
    ["9.1.0.96.10.in-addr.arpa.", "NXDOMAIN"],
  ];
  for (const [name, rcode] of rcodes) {
    for (const type of ["PTR", "NS", "A"]) {
      test(`${rcode} for ${name} ${type}`, async () => {
        const answer = await (await start()).ask({ name, type });
        assert.equal(rcodeName(answer.rcode), rcode);
        if (type !== "PTR" || answer.answer.length === 0) assert.match(answer.authority.join(), / SOA /);
      });
    }
  }

  describe("with fallthrough", () => {
    const name = "96.10.in-addr.arpa.";
    const cases: readonly (readonly [title: string, next: Next, rcode: string, answer: readonly string[]])[] =
      [
        [
          "have the records of other plugins",
          answering({ answer: records(`${name} 60 IN NS ns.example.`) }),
          "NOERROR",
          [`${name} 60 IN NS ns.example.`],
        ],
        ["are empty if others deny them", answering({ rcode: Rcode.NXDOMAIN }), "NOERROR", []],
        [
          "are empty if others deny them later",
          async (query) => query.reply({ rcode: Rcode.NXDOMAIN }),
          "NOERROR",
          [],
        ],
        [
          "are empty if no plugin answers",
          (query) => query.fail(Rcode.SERVFAIL, new NoNextPluginError("kubernetes")),
          "NOERROR",
          [],
        ],
        ["are refused if others refuse them", answering({ rcode: Rcode.REFUSED }), "REFUSED", []],
      ];
    for (const [title, next, rcode, expected] of cases) {
      test(title, async () => {
        const answer = await (await start("fallthrough")).ask({ name, type: "NS", next });
        assert.equal(rcodeName(answer.rcode), rcode);
        assert.deepEqual(answer.answer, expected);
      });
    }

    test("NXDOMAIN of other plugins stays if no address has a name below", async () => {
      const next = answering({ rcode: Rcode.NXDOMAIN });
      const answer = await (await start("fallthrough")).ask({ name: "11.in-addr.arpa.", type: "NS", next });
      assert.equal(answer.rcode, Rcode.NXDOMAIN);
    });
  });

  for (const [zones, target] of [
    ["in-addr.arpa ip6.arpa", "web.shop.svc.in-addr.arpa."],
    ["ip6.arpa in-addr.arpa", "web.shop.svc.ip6.arpa."],
    ["10.in-addr.arpa ip6.arpa", "web.shop.svc.ip6.arpa."],
    ["in-addr.arpa ip6.arpa cluster.local", "web.shop.svc.cluster.local."],
  ] as const) {
    test(`the zones ${zones} lead to ${target}`, async () => {
      const plugin = PluginTest.of(kubernetes, `kubernetes ${zones} {\n manifests ${folder}\n}`);
      running.push(plugin);
      assert.equal(plugin.warnings.length, zones.endsWith("arpa") ? 1 : 0);
      await plugin.start();
      const name = "1.0.96.10.in-addr.arpa.";
      assert.deepEqual((await plugin.ask({ name, type: "PTR" })).answer, [`${name} 5 IN PTR ${target}`]);
      assert.match((await plugin.ask({ name: "10.in-addr.arpa.", type: "A" })).authority.join(), / SOA /);
    });
  }
});
