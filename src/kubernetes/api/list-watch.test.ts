import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RESOURCE_TYPES } from "../../../test/support/kubernetes-api/resource-types.ts";
import { SourceTest } from "../../../test/support/kubernetes-api/source-test.ts";
import { FakeClock } from "../../lib/clock.ts";

describe("servers that have never heard of a list as the beginning of a watch", () => {
  it("are asked for pages when they fall silent", async () => {
    await using test = await SourceTest.prepare({
      clock: new FakeClock(),
      simulator: { streamsLists: "unheard of", bookmarkIntervalMs: 3_600_000 },
      source: { timings: { listSilenceMs: 1_000 } },
    });
    test.putService("web");
    test.source.start();
    await test.watching();
    assert.deepEqual(test.services, ["default/web"]);
    assert.deepEqual(test.log.lines, []);
  });

  it("are asked for pages when they never fall silent", async () => {
    await using test = await SourceTest.prepare({
      clock: new FakeClock(),
      kinds: ["services"],
      simulator: { streamsLists: "unheard of", bookmarkIntervalMs: 1 },
      source: { timings: { streamedListMs: 1_000 } },
    });
    test.putService("web");
    test.source.start();
    await test.watching();
    assert.deepEqual(test.services, ["default/web"]);
    assert.match(
      test.log.lines.join("\n"),
      /cannot list services: a list .* has no end: reading it page by page/,
    );
  });

  it("are asked for pages at once where they have Endpoints alone", async () => {
    await using test = await SourceTest.prepare({
      kinds: ["endpoints"],
      simulator: {
        streamsLists: "unheard of",
        types: RESOURCE_TYPES.filter(({ plural }) => plural !== "endpointslices"),
      },
    });
    test.source.start();
    await test.watching();
    assert.deepEqual(
      test.api.requests.map(({ path, parameters }) => `${path} ${parameters.get("watch")}`),
      [
        "/apis/discovery.k8s.io/v1/endpointslices true",
        "/apis/discovery.k8s.io/v1beta1/endpointslices null",
        "/api/v1/endpoints null",
        "/api/v1/endpoints true",
      ],
    );
  });
});
