import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { Name, Opcode, parseRecord, Rcode, RecordType } from "../../dns/index.ts";
import { type Message, makeQuery } from "../../dns/message.ts";
import { plainData } from "../../dns/resource-record.ts";
import { directive } from "../../plugin/config/schema.ts";
import { definePlugin } from "../../plugin/contract/define-plugin.ts";
import { feedToNobody } from "../../plugin/contract/site.ts";
import { Fallthrough } from "../../plugin/query/zones.ts";
import { MemoryLog, PluginTest } from "../../plugin/testing.ts";
import { Zone } from "../data/zone.ts";
import { ZoneCopies } from "../serving/copy-set.ts";
import { ServedZone } from "../serving/served-zone.ts";
import { ZoneService } from "../serving/zone-service.ts";
import { DynamicZone } from "./dynamic-zone.ts";
import { openPolicy } from "./update-policy.ts";

const KEY = Name.parse("key.example.");
const APEX = Name.parse("example.");

function serviceOf(): ZoneService {
  const services: ZoneService[] = [];
  const definition = definePlugin({
    name: "zones",
    summary: "Zones of a test.",
    config: directive({ args: {}, options: {} }),
    create(_config, site) {
      services.push(new ZoneService({}, site, Fallthrough.none));
      return {};
    },
  });
  PluginTest.of(definition, "zones");
  const [service] = services;
  assert.ok(service);
  return service;
}

function emptyZone(serial = 1): Zone {
  const zone = new Zone(APEX);
  const record = parseRecord(`example. 60 IN SOA ns. host. ${serial} 2 3 4 5`);
  zone.addPlain({ owner: record.name.wire, type: record.type, ttl: record.ttl, rdata: plainData(record) });
  return zone;
}

function updateOf(...records: string[]): Message {
  return {
    ...makeQuery({ name: APEX, type: RecordType.SOA }),
    opcode: Opcode.UPDATE,
    authority: records.map((record) => parseRecord(record)),
  };
}

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "portolan-update-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function zoneIn(folder: string, feed = feedToNobody): { served: ServedZone; dynamic: DynamicZone } {
  const service = serviceOf();
  const served = new ServedZone(APEX);
  service.copies = new ZoneCopies(feed);
  service.copies.add(served);
  service.table.add(served);
  const dynamic = new DynamicZone({
    served,
    path: join(folder, "journal"),
    policy: openPolicy([{ key: KEY, name: undefined, types: undefined }]),
    service,
    log: new MemoryLog(),
    readFile: async () => undefined,
    onDamage: () => undefined,
  });
  return { served, dynamic };
}

test("an update is acknowledged when all data planes have it", async (t) => {
  const said: string[] = [];
  const asked = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  const { served, dynamic } = zoneIn(folderOf(t), {
    ...feedToNobody,
    publish: () => void said.push("published"),
    taken: () => {
      asked.resolve();
      return taken.promise;
    },
  });
  await dynamic.takeOver(emptyZone());
  said.length = 0;
  const acknowledged = dynamic.update(updateOf("www.example. 60 IN A 192.0.2.1"), KEY).then((rcode) => {
    said.push("acknowledged");
    return rcode;
  });
  await asked.promise;
  assert.deepEqual(said, ["published"]);
  assert.equal(served.zone?.serial, 2);
  taken.resolve();
  assert.equal(await acknowledged, Rcode.NOERROR);
  await dynamic.stop();
});

suite("the next configuration has the acknowledged updates", () => {
  const www = updateOf("www.example. 60 IN A 192.0.2.1");

  /** The zone of a configuration in force, and that of the next one, which has not read the file yet. */
  async function inReload(t: TestContext) {
    const folder = folderOf(t);
    const [former, next] = [zoneIn(folder), zoneIn(folder)];
    await former.dynamic.takeOver(emptyZone());
    next.dynamic.inherit(former.dynamic);
    t.after(() => Promise.all([former.dynamic.stop(), next.dynamic.stop()]));
    return { folder, former, next };
  }

  test("while it waits to come into force", async (t) => {
    const { former, next } = await inReload(t);
    await next.dynamic.takeOver(emptyZone());
    assert.equal(await former.dynamic.update(www, KEY), Rcode.NOERROR);
    assert.equal(next.served.zone?.serial, 2);
    assert.equal(await former.dynamic.update(updateOf("b.example. 60 IN A 192.0.2.2"), KEY), Rcode.NOERROR);
    assert.equal(next.served.zone?.serial, 3);
    const { zone } = next.served;
    await next.dynamic.adopt();
    // Nothing had to be taken over as a whole.
    assert.equal(next.served.zone, zone);
    assert.equal(await former.dynamic.update(updateOf("c.example. 60 IN A 192.0.2.3"), KEY), Rcode.NOERROR);
    assert.deepEqual([former.served.zone?.serial, next.served.zone?.serial], [3, 4]);
    assert.equal(next.served.zone?.recordCount, 4);
  });

  test("while it reads the file", async (t) => {
    const { former, next } = await inReload(t);
    const names = Array.from({ length: 20 }, (_, index) => `n${index}.example. 60 IN A 192.0.2.${index}`);
    const updates = Promise.all(names.map((name) => former.dynamic.update(updateOf(name), KEY)));
    await next.dynamic.takeOver(emptyZone());
    assert.deepEqual(new Set(await updates), new Set([Rcode.NOERROR]));
    assert.equal(next.served.zone?.serial, former.served.zone?.serial);
    assert.equal(next.served.zone?.recordCount, 21);
  });

  test("if it comes into force before the acknowledgement", async (t) => {
    const { former, next } = await inReload(t);
    await next.dynamic.takeOver(emptyZone());
    const seen = former.dynamic.update(www, KEY).then((rcode) => [rcode, next.served.zone?.serial]);
    await next.dynamic.adopt();
    assert.deepEqual(await seen, [Rcode.NOERROR, 2]);
  });

  test("and no updates of another file, nor after it was abandoned", async (t) => {
    const { folder, former, next: other } = await inReload(t);
    const givenUp = zoneIn(folder);
    await other.dynamic.takeOver(emptyZone(2));
    assert.equal(await former.dynamic.update(www, KEY), Rcode.NOERROR);
    // By its serial, the next change would fit.
    assert.equal(await former.dynamic.update(updateOf("b.example. 60 IN A 192.0.2.2"), KEY), Rcode.NOERROR);
    assert.deepEqual([other.served.zone?.serial, other.served.zone?.recordCount], [2, 1]);
    await other.dynamic.stop();
    givenUp.dynamic.inherit(former.dynamic);
    await givenUp.dynamic.takeOver(emptyZone());
    assert.equal(givenUp.served.zone?.serial, 3);
    await givenUp.dynamic.stop();
    assert.equal(await former.dynamic.update(updateOf("c.example. 60 IN A 192.0.2.3"), KEY), Rcode.NOERROR);
    assert.equal(givenUp.served.zone?.serial, 3);
  });
});
