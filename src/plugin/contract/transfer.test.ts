import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Name } from "../../dns/name.ts";
import { SOA } from "../../dns/record-table.ts";
import { records, recordText } from "../testing.ts";
import { ServiceKey } from "./service.ts";
import { isAsNew, transferRecords, type ZoneTransfer } from "./transfer.ts";

const zone = Name.parse("example.org.");

function zoneWith(serial: number): ZoneTransfer {
  const times = { refresh: 1, retry: 2, expire: 3, minimum: 4 };
  return {
    soa: SOA.create(zone, 5, { primary: zone, mailbox: zone, serial, ...times }),
    records: () => records("example.org. 5 IN NS a.", "b.example.org. 5 IN A 192.0.2.1"),
  };
}

const types = (serial: number, known?: number) =>
  Array.from(transferRecords(zoneWith(serial), known), (record) => recordText(record).split(" ")[3]);

describe("the records of a transfer", () => {
  it("stand between two SOA records", () => {
    assert.deepEqual(types(7), ["SOA", "NS", "A", "SOA"]);
    assert.deepEqual(types(7, 6), ["SOA", "NS", "A", "SOA"]);
  });

  it("are the SOA record alone for a client that is up to date, or ahead", () => {
    assert.deepEqual(types(7, 7), ["SOA"]);
    assert.deepEqual(types(7, 8), ["SOA"]);
  });

  it("follow serials around their end (RFC 1982)", () => {
    assert.deepEqual(types(1, 0xffff_ffff), ["SOA", "NS", "A", "SOA"]);
    assert.equal(isAsNew(1, 0xffff_ffff), true);
    assert.equal(isAsNew(0xffff_ffff, 1), false);
    assert.equal(isAsNew(0x8000_0000, 1), true);
    assert.equal(isAsNew(0x8000_0002, 1), false);
  });

  it("are made one by one", () => {
    let made = 0;
    const endless: ZoneTransfer = {
      ...zoneWith(1),
      *records() {
        for (;;) {
          made++;
          yield* records("a.example.org. 5 IN A 192.0.2.1");
        }
      },
    };
    const stream = transferRecords(endless);
    for (let count = 0; count < 4; count++) stream.next();
    assert.equal(made, 3);
  });
});

describe("a service", () => {
  const NUMBER: ServiceKey<number> = new ServiceKey("number");
  const OTHER: ServiceKey<number> = new ServiceKey("number");

  it("is found by its key, in chain order, and by no other", () => {
    const plugins = [
      { name: "none", instance: {} },
      { name: "first", instance: { services: [OTHER.offer(1), NUMBER.offer(2)] } },
      { name: "second", instance: { services: [NUMBER.offer(3)] } },
    ];
    assert.deepEqual(NUMBER.among(plugins), [2, 3]);
    assert.deepEqual(OTHER.among(plugins), [1]);
    assert.deepEqual(new ServiceKey("number").among(plugins), []);
  });
});
