/** Compares a transferred external zone, record by record, with the answers to queries. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Name } from "../../dns/name.ts";
import { recordTypeName } from "../../dns/type-names.ts";
import { transferRecords } from "../../plugin/contract/transfer.ts";
import { recordText } from "../../plugin/testing.ts";
import { startExternal, ZONES } from "./fixtures/external.ts";

const ZONE = Name.parse("example.org.");

async function copyOf(external: string) {
  const running = await startExternal({ external });
  const source = running.plugin.instances[0]?.transferSource ?? assert.fail("no zones to transfer");
  const transfer = source.transfer(ZONE) ?? assert.fail("not transferred");
  return { ...running, source, transfer, records: [...transfer.records()] };
}

const SERVICES = [
  "both.shop.example.org. 5 IN A 192.0.2.4",
  "both.shop.example.org. 5 IN SRV 0 50 80 both.shop.example.org.",
  "both.shop.example.org. 5 IN SRV 0 50 80 lb.example.com.",
  "_http._tcp.both.shop.example.org. 5 IN SRV 0 50 80 both.shop.example.org.",
  "_http._tcp.both.shop.example.org. 5 IN SRV 0 50 80 lb.example.com.",
  "edge.shop.example.org. 5 IN A 192.0.2.7",
  "edge.shop.example.org. 5 IN SRV 0 100 3306 edge.shop.example.org.",
  "_sql._tcp.edge.shop.example.org. 5 IN SRV 0 100 3306 edge.shop.example.org.",
  "named.shop.example.org. 30 IN CNAME lb.example.com.",
  "_http._tcp.named.shop.example.org. 5 IN SRV 0 100 80 lb.example.com.",
  "portless.shop.example.org. 5 IN A 192.0.2.8",
  "twin.shop.example.org. 5 IN A 192.0.2.2",
  "twin.shop.example.org. 5 IN SRV 0 100 9000 twin.shop.example.org.",
  "web.shop.example.org. 5 IN A 192.0.2.1",
  "web.shop.example.org. 5 IN A 192.0.2.2",
  "web.shop.example.org. 5 IN AAAA 2001:db8::1",
  "web.shop.example.org. 5 IN SRV 0 16 80 web.shop.example.org.",
  "web.shop.example.org. 5 IN SRV 0 16 443 web.shop.example.org.",
  "_http._tcp.web.shop.example.org. 5 IN SRV 0 33 80 web.shop.example.org.",
  "_https._tcp.web.shop.example.org. 5 IN SRV 0 33 443 web.shop.example.org.",
];

const HEADLESS = [
  "db.shop.example.org. 5 IN A 10.244.1.1",
  "db.shop.example.org. 5 IN A 10.244.1.2",
  "db.shop.example.org. 5 IN SRV 0 50 3306 db-0.db.shop.example.org.",
  "db.shop.example.org. 5 IN SRV 0 50 3306 10-244-1-2.db.shop.example.org.",
  "db-0.db.shop.example.org. 5 IN A 10.244.1.1",
  "db-0.db.shop.example.org. 5 IN SRV 0 100 3306 db-0.db.shop.example.org.",
  "10-244-1-2.db.shop.example.org. 5 IN SRV 0 100 3306 10-244-1-2.db.shop.example.org.",
  "10-244-1-2.db.shop.example.org. 5 IN A 10.244.1.2",
  "_sql._tcp.db.shop.example.org. 5 IN SRV 0 50 3306 db-0.db.shop.example.org.",
  "_sql._tcp.db.shop.example.org. 5 IN SRV 0 50 3306 10-244-1-2.db.shop.example.org.",
];

describe("a copy of an external zone", () => {
  for (const [external, services] of [
    [ZONES, SERVICES],
    [`${ZONES} {\n headless\n}`, [...SERVICES, ...HEADLESS]],
  ] as const) {
    const title = external === ZONES ? "without" : "with";

    it(`has the server and all services, ${title} headless ones`, async () => {
      const { records, transfer, stop } = await copyOf(external);
      const texts = records.map(recordText);
      assert.deepEqual(texts.slice(0, 2), [
        "example.org. 5 IN NS ns1.dns.example.org.",
        "ns1.dns.example.org. 5 IN A 198.51.100.9",
      ]);
      assert.deepEqual(texts.slice(2).sort(), [...services].sort());
      const all = Array.from(transferRecords(transfer), recordText);
      assert.match(
        all[0] ?? "",
        /^example\.org\. 5 IN SOA ns1\.dns\.example\.org\. hostmaster\.dns\.example\.org\. /,
      );
      assert.equal(all.at(-1), all[0]);
      assert.equal(all.length, texts.length + 2);
      await stop();
    });

    it(`has the records that queries get, and complete RRsets, ${title} headless ones`, async () => {
      const { records, plugin, stop } = await copyOf(external);
      for (const record of records) {
        const { answer } = await plugin.ask({ name: `${record.name}`, type: recordTypeName(record.type) });
        assert.notEqual(answer.length, 0, recordText(record));
        const set = records.filter(({ name, type }) => name.equals(record.name) && type === record.type);
        assert.deepEqual(answer.sort(), set.map(recordText).sort(), recordText(record));
      }
      await stop();
    });
  }

  it("is of forward zones, by their apex", async () => {
    const { source, stop } = await copyOf("example.org in-addr.arpa Example.NET");
    assert.deepEqual(source.transferZones.map(String), ["example.org.", "example.net."]);
    assert.equal(source.transfer(Name.parse("shop.example.org.")), undefined);
    assert.equal(source.transfer(Name.parse("in-addr.arpa.")), undefined);
    await stop();
  });
});
