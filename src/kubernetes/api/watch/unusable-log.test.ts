import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { SourceTest } from "../../../../test/support/kubernetes-api/source-test.ts";
import { FakeClock } from "../../../lib/time/clock.ts";

describe("objects that cannot be used", () => {
  it("are skipped and replace what they were before", async () => {
    await using test = await SourceTest.start({ simulator: { servesProtobuf: false } });
    await test.watching();
    test.putService("web");
    await test.until(() => test.services.length === 1);
    for (const clusterIP of ["soon", "later"]) test.putService("web", clusterIP);
    test.api.put("services", {
      metadata: { name: "null", namespace: "default" },
      spec: null,
      status: null,
      odd: [1],
    });
    test.putService("last");
    await test.until(() => test.services.includes("default/last"));
    assert.deepEqual(test.services, ["default/last", "default/null"]);
    assert.deepEqual(
      test.log.lines.filter((line) => line.includes("cannot be used")),
      ['[WARNING] Service default/web cannot be used: spec.clusterIP "soon" is not an IP address'],
    );
  });

  it("are named once, and counted once a minute", async () => {
    const clock = new FakeClock();
    await using test = await SourceTest.start({ clock, simulator: { servesProtobuf: false } });
    await test.watching();
    for (let n = 0; n < 50; n++) test.putService(`bad-${n}`, "soon");
    test.putService("last");
    await test.until(() => test.services.includes("default/last"));
    const lines = () => test.log.lines.filter((line) => line.includes("cannot be used"));
    assert.deepEqual(lines(), [
      '[WARNING] Service default/bad-0 cannot be used: spec.clusterIP "soon" is not an IP address',
    ]);
    clock.advance(60_000);
    assert.deepEqual(lines().slice(1), [
      '[WARNING] 49 more objects cannot be used; the last one: Service default/bad-49 cannot be used: spec.clusterIP "soon" is not an IP address',
    ]);
  });

  it("are not those slices that are no Service's", async () => {
    await using test = await SourceTest.prepare();
    const metadata = { name: "own", namespace: "default", labels: {} };
    test.api.put("endpointslices", {
      metadata,
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.0.0.1"] }],
    });
    test.source.start();
    await test.watching();
    test.api.put("endpointslices", {
      metadata,
      addressType: "IPv4",
      endpoints: [{ addresses: ["10.0.0.2"] }],
    });
    test.putService("last");
    await test.until(() => test.services.includes("default/last"));
    assert.deepEqual(
      test.log.lines.filter((line) => line.includes("WARNING")),
      [],
    );
  });
});
