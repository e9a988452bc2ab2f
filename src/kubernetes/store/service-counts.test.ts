/** What is counted as services and endpoints come and go is what a look at all of them finds. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { packGroups } from "../objects/reduce-endpoints.ts";
import { ClusterStore } from "./store.ts";

const NAMESPACE = "shop";

const name = fc.constantFrom("a", "b", "c");
const addresses = fc.uniqueArray(fc.constantFrom("10.0.0.1", "10.0.0.2", "fd00::1", "fd00::2"), {
  maxLength: 3,
});
/** Without addresses: a deletion. */
const step = fc.record({
  isService: fc.boolean(),
  name,
  owner: name,
  addresses: fc.option(addresses, { nil: undefined }),
});

function octets(text: string): Uint8Array {
  return parseIpAddress(text) ?? assert.fail(text);
}

test("services and their families are counted as they come and go", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const store = new ClusterStore({ clock: new FakeClock(), kinds: [] });
      for (const { isService, name, owner, addresses } of steps) {
        const identity = { namespace: NAMESPACE, name };
        if (addresses === undefined) store.delete(isService ? "services" : "endpoints", identity);
        else if (isService)
          store.put("services", {
            ...identity,
            type: addresses.length > 0 ? "clusterIP" : "headless",
            clusterAddresses: addresses.map(octets),
            externalName: "",
            ports: [],
            publishNotReadyAddresses: false,
            externalAddresses: [],
          });
        else {
          const endpoints = addresses.map((text) => ({
            octets: octets(text),
            ready: true,
            label: "",
            zone: "",
          }));
          store.put("endpoints", { ...identity, service: owner, groups: packGroups(endpoints, []) });
        }
        const { serviceCount, hasIpv4, hasIpv6 } = store.services;
        const entries = [...store.services.entries()];
        const lengths = entries.flatMap(({ service, endpoints }) => [
          ...(service?.clusterAddresses ?? []).map(({ length }) => length),
          ...endpoints.groups.map(({ addressLength }) => addressLength),
        ]);
        assert.deepEqual(
          [serviceCount, hasIpv4, hasIpv6],
          [
            entries.filter(({ service }) => service !== undefined).length,
            lengths.includes(4),
            lengths.includes(16),
          ],
        );
      }
    }),
    { numRuns: 300 },
  );
});
