import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type LibcName, type PodDns, planSearch, resolverSettings, whyEnough } from "./pod-resolver.ts";

const POD: PodDns = {
  namespace: "shop",
  policy: "ClusterFirst",
  hostNetwork: false,
  config: { nameservers: [], searches: [], ndots: undefined },
};
const CLUSTER = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"];

describe("resolverSettings", () => {
  for (const [title, pod, expected] of [
    ["ClusterFirst", POD, { search: CLUSTER, ndots: 5 }],
    [
      "dnsConfig adds to it",
      { ...POD, config: { nameservers: [], searches: ["corp.example.", "cluster.local"], ndots: 2 } },
      { search: [...CLUSTER, "corp.example"], ndots: 2 },
    ],
    [
      "None is dnsConfig alone",
      {
        ...POD,
        policy: "None",
        config: { nameservers: ["10.96.0.10"], searches: ["corp.example"], ndots: undefined },
      },
      { search: ["corp.example"], ndots: 1 },
    ],
    [
      "ClusterFirstWithHostNet",
      { ...POD, policy: "ClusterFirstWithHostNet", hostNetwork: true },
      { search: CLUSTER, ndots: 5 },
    ],
    [
      "hostNetwork with ClusterFirst",
      { ...POD, hostNetwork: true },
      { reason: "it uses the resolver of its node and not the cluster's: it is on the host's network" },
    ],
    [
      "Default",
      { ...POD, policy: "Default" },
      { reason: "it uses the resolver of its node and not the cluster's: its dnsPolicy is Default" },
    ],
  ] as const) {
    it(title, () => assert.deepEqual(resolverSettings(pod, "cluster.local"), expected));
  }
});

describe("planSearch", () => {
  for (const [name, libc, ndots, names] of [
    ["web", "glibc", 5, ["web.a.", "web.b.", "web."]],
    ["web.shop", "musl", 5, ["web.shop.a.", "web.shop.b.", "web.shop."]],
    ["web.", "glibc", 5, ["web."]],
    ["a.b.c.d.e.f", "glibc", 5, ["a.b.c.d.e.f.", "a.b.c.d.e.f.a.", "a.b.c.d.e.f.b."]],
    ["a.b.c.d.e.f", "musl", 5, ["a.b.c.d.e.f."]],
    ["www.example.com", "glibc", 2, ["www.example.com.", "www.example.com.a.", "www.example.com.b."]],
  ] as const) {
    it(`${name} with ndots:${ndots} in ${libc}`, () =>
      assert.deepEqual(planSearch(name, { search: ["a", "b"], ndots }, libc).names, names));
  }

  it("without a search path there is only one name", () =>
    assert.deepEqual(planSearch("web", { search: [], ndots: 5 }, "glibc").names, ["web."]));
});

describe("whyEnough", () => {
  for (const [rcode, hasAnswer, libc, isEnough] of [
    ["NOERROR", true, "glibc", true],
    ["NOERROR", true, "musl", true],
    ["NXDOMAIN", false, "glibc", false],
    ["NXDOMAIN", false, "musl", false],
    ["NOERROR", false, "glibc", false],
    ["NOERROR", false, "musl", true],
    ["SERVFAIL", false, "glibc", false],
    ["SERVFAIL", false, "musl", true],
  ] as const satisfies readonly (readonly [string, boolean, LibcName, boolean])[]) {
    it(`${rcode}${hasAnswer ? " with an answer" : ""} in ${libc}`, () =>
      assert.equal(whyEnough({ rcode, hasAnswer }, libc) !== undefined, isEnough));
  }
});
