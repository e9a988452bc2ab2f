/** The zone of a cluster that changes 200 times a second, copied by BIND, Knot and NSD: in the end all have the same, and most of it as changes. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { setInterval as ticks } from "node:timers/promises";
import { createServer } from "../../src/index.ts";
import { service, slice } from "../support/changing-cluster.ts";
import { freePort } from "../support/free-ports.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { applyObject } from "../support/kubernetes-api/control-plane.ts";
import { copyOf, sampleOf, withFolder } from "../support/zone-copies.ts";
import { skipWithoutZonePeer, ZONE_PEERS, zonePeerNames } from "../support/zone-peers.ts";

const ZONE = "cluster.local.";
/** More of them: `PORTOLAN_CLUSTER_CHANGES=12000`. */
const CHANGES = Number(process.env.PORTOLAN_CLUSTER_CHANGES ?? 800);
const MILLISECONDS = 5;

function change(api: ApiSimulator, number: number): void {
  const name = `s${number % 60}`;
  const host = (number * 7) % 250;
  const kind = number % 4;
  if (kind === 0) {
    const ports = [{ name: "http", port: 80 }];
    applyObject(api, service(name, { clusterIP: `10.96.1.${host}`, ports }));
  } else if (kind === 1) applyObject(api, service(name, { clusterIP: "None" }));
  else if (kind === 2) {
    const endpoints = [
      { addresses: [`10.244.0.${host}`], conditions: { ready: true } },
      { addresses: [`10.244.1.${host}`], conditions: { ready: number % 8 !== 2 } },
    ];
    applyObject(api, slice(`s${(number - 1) % 60}`, endpoints));
  } else if (number % 16 === 3) api.delete("services", "default", `s${(number - 3) % 60}`);
  else applyObject(api, service(name, { type: "ExternalName", externalName: `h${host}.example.com` }));
}

const skip = zonePeerNames.map(skipWithoutZonePeer).find((reason) => reason !== false) ?? false;

test("BIND, Knot and NSD follow a cluster", { skip }, () =>
  withFolder(async (folder) => {
    await using api = await ApiSimulator.start();
    applyObject(api, { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } });
    for (let number = 0; number < 200; number++) {
      applyObject(api, service(`old${number}`, { clusterIP: `10.97.0.${number + 1}` }));
    }
    const port = await freePort();
    // The secondaries start first: the zone is complete only once the cluster is listed, and NOTIFY announces it.
    await using bind = await ZONE_PEERS.bind.start("cluster.local", { primary: port });
    await using knot = await ZONE_PEERS.knot.start("cluster.local", { primary: port });
    await using nsd = await ZONE_PEERS.nsd.start("cluster.local", { primary: port });
    const peers = [bind, knot, nsd];
    const corefile = `cluster.local:${port} {\n bind 127.0.0.1\n kubernetes {\n  endpoint ${api.url}\n }\n transfer {\n  to ${peers.map((peer) => `127.0.0.1:${peer.port}`).join(" ")}\n }\n}\n`;
    await using server = await createServer({ corefile, file: join(folder, "Corefile") });
    await server.start();
    // The test's own transfers are counted as well.
    let own = 0;
    const agree = async (): Promise<void> => {
      const deadline = performance.now() + 25_000;
      for (;;) {
        own++;
        const ours = await copyOf(port, ZONE);
        const theirs = await Promise.all(peers.map((peer) => copyOf(peer.port, ZONE)));
        const withoutSoa = (records: readonly string[]) =>
          records.filter((record) => !/\sSOA\s/.test(record));
        const isSame = theirs.every(
          (records) =>
            withoutSoa(records).join("\n") === withoutSoa(ours).join("\n") &&
            records.length > 200 &&
            records.join("\n") === theirs[0]?.join("\n"),
        );
        if (isSame) return;
        if (performance.now() > deadline) {
          for (const records of theirs) assert.deepEqual(records, ours);
        }
      }
    };
    await agree();
    const count = async (result: string): Promise<number> =>
      sampleOf(await server.metrics(), `portolan_transfer_out_total{zone="${ZONE}",result="${result}"}`);
    const before = (await count("axfr")) - own;
    let number = 0;
    for await (const _ of ticks(MILLISECONDS)) {
      change(api, number++);
      if (number === CHANGES) break;
    }
    await agree();
    const [whole, changes] = [(await count("axfr")) - own - before, await count("ixfr")];
    assert.ok(changes > 3 * whole, `${changes} transfers of changes, and ${whole} of the whole zone`);
  }),
);
