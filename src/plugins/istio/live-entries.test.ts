import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ApiSimulator } from "../../../test/support/kubernetes-api/api-simulator.ts";
import { RESOURCE_TYPES } from "../../../test/support/kubernetes-api/resource-types.ts";
import { untilTrue } from "../../../test/support/until-true.ts";
import { Rcode } from "../../dns/index.ts";
import { SystemClock } from "../../lib/time/clock.ts";
import { PluginTest, until } from "../../plugin/testing.ts";
import { answers, entry, VIP, vip } from "./fixtures/entries.ts";
import istio from "./index.ts";

describe("istio with a live API", () => {
  for (const version of ["v1", "v1beta1", "v1alpha3"]) {
    it(`watches a live API that serves ${version}`, async () => {
      const types = RESOURCE_TYPES.filter(
        (type) => type.plural !== "serviceentries" || type.version === version,
      );
      await using api = await ApiSimulator.start({ types });
      api.put("serviceentries", entry("one", { hosts: ["*.test.global"], addresses: VIP }, { version }));
      const clock = new SystemClock();
      const test = PluginTest.of(istio, `istio {\nendpoint ${api.url}\n}`, { site: { clock } });
      await test.start();
      try {
        assert.equal(test.instances[0]?.ready?.(), true);
        assert.deepEqual(await answers(test, "service1.test.global."), vip("service1.test.global."));
        api.put(
          "serviceentries",
          entry("two", { hosts: ["two.global"], addresses: ["127.255.0.7"] }, { version }),
        );
        await until(() => api.openWatches === 1);
        await untilTrue(async () => (await answers(test, "two.global.")) !== "NXDOMAIN");
        api.delete("serviceentries", "default", "one");
        await untilTrue(async () => (await answers(test, "a.test.global.")) === "NXDOMAIN");
        assert.match(
          test.instances[0]?.describeState?.().join() ?? "",
          /service entries: watching, age \d+s/,
        );
      } finally {
        await test.stop();
      }
    });
  }

  it("answers SERVFAIL until the entries are listed", async () => {
    await using api = await ApiSimulator.start();
    api.permits = () => false;
    const clock = new SystemClock();
    const test = PluginTest.of(istio, `istio {\nendpoint ${api.url}\n}`, { site: { clock } });
    for (const instance of test.instances) await instance.start?.();
    try {
      assert.equal(test.instances[0]?.ready?.(), false);
      const outcome = await test.outcome({ name: "a.global." });
      assert.ok(outcome.kind === "failed");
      assert.equal(outcome.rcode, Rcode.SERVFAIL);
    } finally {
      await test.stop();
    }
  });

  it("a reload takes over the watch, unless its options differ", async () => {
    await using api = await ApiSimulator.start();
    api.put("serviceentries", entry("one", { hosts: ["a.global"], addresses: VIP }));
    const clock = new SystemClock();
    const make = (line: string) =>
      PluginTest.of(istio, `istio {\nendpoint ${api.url}\n${line}\n}`, { site: { clock } });
    const first = make("");
    await first.start();
    const lists = (): number => api.requests.length;
    const before = lists();
    const second = make("ttl 7");
    await second.instances[0]?.inherit?.(first.instances.map((instance) => ({ name: "istio", instance })));
    await second.start();
    assert.equal(lists(), before);
    await first.stop();
    assert.deepEqual(await answers(second, "a.global."), ["a.global. 7 IN A 127.255.0.2"]);
    const third = make("default_address 127.255.0.9");
    await third.instances[0]?.inherit?.(second.instances.map((instance) => ({ name: "istio", instance })));
    await third.start();
    assert.ok(lists() > before);
    await second.stop();
    assert.deepEqual(await answers(third, "a.global."), vip("a.global."));
    await third.stop();
  });
});
