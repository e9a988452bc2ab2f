/** Compares a transferred zone of a cluster, record by record, with the answers to queries. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { RULE_GROUPS } from "../../../test/fixtures/kubernetes/rules.ts";
import { Name } from "../../dns/name.ts";
import type { ResourceRecord } from "../../dns/record-kind.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { transferRecords, ZoneNotLoadedError } from "../../plugin/contract/transfer.ts";
import type { TransferSource } from "../../plugin/index.ts";
import { PluginTest, recordText } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const fixture = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));
const ZONE = Name.parse("cluster.local.");

function make(...options: readonly string[]) {
  const lines = [`manifests ${fixture}`, ...options].join("\n");
  return PluginTest.of(kubernetes, `kubernetes cluster.local in-addr.arpa ip6.arpa {\n${lines}\n}`);
}

function sourceOf(plugin: ReturnType<typeof make>): TransferSource {
  return plugin.instances[0]?.transferSource ?? assert.fail("the plugin has no zones to transfer");
}

function copyOf(plugin: ReturnType<typeof make>): ResourceRecord[] {
  return [...(sourceOf(plugin).transfer(ZONE)?.records() ?? assert.fail("not transferred"))];
}

/**
 * Answers that queries get and a copy leaves out: names that are made out of others (aliases followed, endpoints below services with
 * addresses of their own, addresses at the name of a port, ports of a headless service at its name) and the version (docs/spec/kubernetes-dns.md#transfer).
 */
function isLeftOut(name: string, type: string, answer: readonly string[]): boolean {
  const labels = name.split(".");
  if (type === "TXT" || labels.at(-1) === "pod" || labels.includes("_zone")) return true;
  if (answer.some((text) => text.startsWith("CNAME ")) && type !== "CNAME") return true;
  const [first = ""] = labels;
  if (labels.length === 5) return type !== "SRV" || !first.startsWith("_");
  if (labels.length === 4) return type === "SRV" || !/^(db|hd|early|nop|cache|multi)$/.test(labels[1] ?? "");
  return type === "SRV" && /^(db|hd|early|nop|cache|multi)$/.test(first);
}

describe("a copy of the cluster's zone", () => {
  const plugin = make();
  before(() => plugin.start());
  after(() => plugin.stop());

  it("is of forward zones, by their apex", () => {
    const source = sourceOf(plugin);
    assert.deepEqual(source.transferZones.map(String), ["cluster.local."]);
    for (const name of ["svc.cluster.local.", "local.", "in-addr.arpa.", "example.org."])
      assert.equal(source.transfer(Name.parse(name)), undefined);
    assert.ok(source.transfer(Name.parse("CLUSTER.local.")) !== undefined);
  });

  it("has each record once, NS and the server's address before all services in order", () => {
    const texts = copyOf(plugin).map(recordText);
    assert.equal(new Set(texts).size, texts.length);
    assert.deepEqual(texts.slice(0, 2), [
      "cluster.local. 5 IN NS ns.dns.cluster.local.",
      "ns.dns.cluster.local. 5 IN A 192.0.2.10",
    ]);
    assert.deepEqual(
      texts.filter((text) => /^(_\w+\._\w+\.)?web\.shop\./.test(text)),
      [
        "web.shop.svc.cluster.local. 5 IN A 10.96.20.5",
        "web.shop.svc.cluster.local. 5 IN SRV 0 50 80 web.shop.svc.cluster.local.",
        "web.shop.svc.cluster.local. 5 IN SRV 0 50 443 web.shop.svc.cluster.local.",
        "_http._tcp.web.shop.svc.cluster.local. 5 IN SRV 0 100 80 web.shop.svc.cluster.local.",
        "_https._tcp.web.shop.svc.cluster.local. 5 IN SRV 0 100 443 web.shop.svc.cluster.local.",
      ],
    );
    assert.deepEqual(
      texts.filter((text) => /(^|\.)db\.shop\.svc\S* 5 IN/.test(text)),
      [
        "db.shop.svc.cluster.local. 5 IN A 10.244.1.11",
        "db.shop.svc.cluster.local. 5 IN A 10.244.2.12",
        "db-0.db.shop.svc.cluster.local. 5 IN A 10.244.1.11",
        "db-1.db.shop.svc.cluster.local. 5 IN A 10.244.2.12",
        "_sql._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 3306 db-0.db.shop.svc.cluster.local.",
        "_sql._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 3306 db-1.db.shop.svc.cluster.local.",
        "_admin._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 33060 db-0.db.shop.svc.cluster.local.",
        "_admin._tcp.db.shop.svc.cluster.local. 5 IN SRV 0 50 33060 db-1.db.shop.svc.cluster.local.",
      ],
    );
    const names = texts.flatMap((text) => /^([\w-]+\.[\w-]+)\.svc\./.exec(text)?.[1] ?? []);
    assert.deepEqual(names, [...names].sort());
  });

  it("has only records that queries get, and complete RRsets", async () => {
    const sets = new Map<string, { name: string; type: string; texts: string[] }>();
    for (const record of copyOf(plugin)) {
      const [name, type] = [record.name.toString(), recordTypeName(record.type)];
      const set = sets.get(`${name} ${type}`) ?? { name, type, texts: [] };
      set.texts.push(recordText(record));
      sets.set(`${name} ${type}`, set);
    }
    assert.ok(sets.size > 30, `${sets.size} sets only`);
    for (const { name, type, texts } of sets.values()) {
      const { answer } = await plugin.ask({ name, type });
      assert.deepEqual(answer.sort(), texts.sort(), `${name} ${type}`);
    }
  });

  it("has every name of the specification", () => {
    const texts = new Set(copyOf(plugin).map(recordText));
    let checked = 0;
    for (const { options, zones, cases } of RULE_GROUPS) {
      if (options.length > 0 || zones !== undefined) continue;
      for (const { rule, name, type, expected } of cases) {
        const answer = typeof expected === "string" ? [] : "answer" in expected ? expected.answer : expected;
        const lower = name.toLowerCase();
        if (name.endsWith(".") || answer.length === 0 || isLeftOut(lower, type, answer)) continue;
        for (const text of answer) {
          const data = text.replace(/((?:\.svc|ns\.dns))$/, "$1.cluster.local.");
          const [kind = "", ...rest] = data.split(" ");
          const record = `${lower}.cluster.local. 5 IN ${kind} ${rest.join(" ")}`;
          assert.ok(texts.has(record), `rule ${rule}: ${record}`);
          checked++;
        }
      }
    }
    assert.ok(checked >= 25, `${checked} records only`);
  });

  it("begins and ends with the SOA record that a query gets", async () => {
    const transfer = sourceOf(plugin).transfer(ZONE) ?? assert.fail("not transferred");
    const all = Array.from(transferRecords(transfer), recordText);
    const { answer } = await plugin.ask({ name: "cluster.local.", type: "SOA" });
    assert.deepEqual([all[0], all.at(-1)], [answer[0], answer[0]]);
    assert.equal(all.filter((text) => text.includes(" SOA ")).length, 2);
    assert.deepEqual(Array.from(transferRecords(transfer, transfer.soa.data.serial), recordText), answer);
  });
});

it("hidden names are not transferred", async () => {
  const plugin = make("namespaces default", "ignore empty_service");
  await plugin.start();
  const names = copyOf(plugin).map(({ name }) => name.toString());
  assert.ok(
    names.every((name) => !name.includes(".shop.")),
    names.join(),
  );
  await plugin.stop();
});

it("a zone that is not completely listed is not transferred", () => {
  const plugin = make();
  assert.throws(() => sourceOf(plugin).transfer(ZONE), ZoneNotLoadedError);
});
