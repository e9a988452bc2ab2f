import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Name, Opcode, parseRecord, Rcode, RecordType } from "../../dns/index.ts";
import { makeQuery } from "../../dns/message.ts";
import { plainData } from "../../dns/resource-record.ts";
import { definePlugin, directive, Fallthrough } from "../../plugin/index.ts";
import { feedToNobody } from "../../plugin/site.ts";
import { MemoryLog, PluginTest } from "../../plugin/testing.ts";
import { ServedZone } from "../served-zone.ts";
import { Zone } from "../zone.ts";
import { ZoneCopies } from "../zone-copies.ts";
import { ZoneService } from "../zone-service.ts";
import { DynamicZone } from "./dynamic-zone.ts";

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

function emptyZone(): Zone {
  const zone = new Zone(APEX);
  const record = parseRecord("example. 60 IN SOA ns. host. 1 2 3 4 5");
  zone.addPlain({ owner: record.name.wire, type: record.type, ttl: record.ttl, rdata: plainData(record) });
  return zone;
}

test("an update is acknowledged when all data planes have it", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-update-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const service = serviceOf();
  const served = new ServedZone(APEX);
  const said: string[] = [];
  const asked = Promise.withResolvers<void>();
  const taken = Promise.withResolvers<void>();
  service.copies = new ZoneCopies({
    ...feedToNobody,
    publish: () => void said.push("published"),
    taken: () => {
      asked.resolve();
      return taken.promise;
    },
  });
  service.copies.add(served);
  service.table.add(served);
  const dynamic = new DynamicZone({
    served,
    path: join(folder, "journal"),
    service,
    log: new MemoryLog(),
    readFile: async () => undefined,
    onDamage: () => undefined,
  });
  await dynamic.takeOver(emptyZone());
  said.length = 0;
  const update = {
    ...makeQuery({ name: APEX, type: RecordType.SOA }),
    opcode: Opcode.UPDATE,
    authority: [parseRecord("www.example. 60 IN A 192.0.2.1")],
  };
  const acknowledged = dynamic.update(update).then((rcode) => {
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
