/** Compares memoized answers with those of a handler that memoizes nothing. */
import assert from "node:assert/strict";
import { it } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { formatRecord } from "../../dns/resource-record.ts";
import { ClusterView } from "../../kubernetes/answers/cluster-view.ts";
import { ExternalAnswers } from "../../kubernetes/external/external-answers.ts";
import type { Service } from "../../kubernetes/objects/objects.ts";
import { packGroups } from "../../kubernetes/objects/reduce-endpoints.ts";
import { ClusterStore } from "../../kubernetes/store/store.ts";
import { parseIpAddress } from "../../lib/net/ip-address.ts";
import type { Fallthrough, Outcome } from "../../plugin/index.ts";
import { FakeClock, PluginTest } from "../../plugin/testing.ts";
import { ExternalHandler } from "./handler.ts";
import k8sExternal from "./index.ts";

const NO_FALLTHROUGH = { permits: () => false } as unknown as Fallthrough;
const OWN = "192.0.2.1";

type Step = (store: ClusterStore, clock: FakeClock) => void;

const name = fc.constantFrom("web", "db");
const namespace = fc.constantFrom("shop", "team");
const addresses = fc.uniqueArray(fc.constantFrom(OWN, "192.0.2.2", "2001:db8::1", "lb.example.com"), {
  maxLength: 2,
});

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        namespace,
        name,
        addresses,
        fc.constantFrom<Service["type"]>("clusterIP", "headless"),
        fc.constantFrom(80, 81),
      )
      .map(
        ([space, service, externalAddresses, type, number]): Step =>
          (store) =>
            store.put("services", {
              ...{ namespace: space, name: service, type, externalAddresses, externalName: "" },
              clusterAddresses: [],
              ports: [{ name: "http", number, protocol: "tcp" }],
              publishNotReadyAddresses: false,
            }),
      ),
  },
  {
    weight: 2,
    arbitrary: fc.tuple(namespace, name, fc.subarray([OWN, "192.0.2.7"])).map(
      ([space, service, own]): Step =>
        (store) => {
          const list = own.map((text) => ({
            ...{ octets: parseIpAddress(text) ?? assert.fail(text), ready: true, label: "", zone: "" },
          }));
          const groups = packGroups(list, [{ name: "http", number: 80, protocol: "tcp" }]);
          store.put("endpoints", { namespace: space, name: `${service}-1`, service, groups });
        },
    ),
  },
  fc.tuple(namespace, name).map(
    ([space, service]): Step =>
      (store) =>
        store.delete("services", { namespace: space, name: service }),
  ),
  fc.tuple(namespace, fc.boolean()).map(
    ([space, exists]): Step =>
      (store) =>
        exists
          ? store.put("namespaces", { namespace: "", name: space })
          : store.delete("namespaces", { namespace: "", name: space }),
  ),
  fc.integer({ min: 1, max: 3_000 }).map(
    (time): Step =>
      (_store, clock) =>
        clock.advance(time),
  ),
);

const QUESTIONS = [
  ...["web.shop", "db.shop", "web.team", "none.shop", "shop", "a.b.c.d.web.shop"].flatMap((text) =>
    ["A", "AAAA", "SRV"].map((type) => ({ name: `${text}.example.org.`, type })),
  ),
  { name: "_http._tcp.web.shop.example.org.", type: "SRV" },
  { name: "192-0-2-7.db.shop.example.org.", type: "A" },
  ...["SOA", "NS", "A"].map((type) => ({ name: "example.org.", type })),
  { name: "ns1.dns.example.org.", type: "A" },
  ...["1", "2"].map((last) => ({ name: `${last}.2.0.192.in-addr.arpa.`, type: "PTR" })),
];

function text(outcome: Outcome): string {
  if (outcome.kind !== "reply") return outcome.kind;
  const { rcode, answer, authority, additional } = outcome;
  const lines = [answer, authority, additional].map((records) =>
    records.map((record) => formatRecord(record)),
  );
  return JSON.stringify([rcode, lines]);
}

for (const headless of [false, true])
  it(`equal fresh answers${headless ? ", with headless services" : ""}`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const clock = new FakeClock({ wallTime: 1_700_000_000_000 });
        const store = new ClusterStore({ clock, kinds: ["namespaces", "services", "endpoints"] });
        const cluster = new ClusterView({
          ...{ store, ttl: 5, pods: "disabled", ignoreEmptyServices: false },
          ownAddresses: () => [OWN],
        });
        for (const kind of store.kinds) store.replaceAll(kind, []);
        store.put("namespaces", { namespace: "", name: "shop" });
        const zones = ["example.org.", "in-addr.arpa."].map((each) => Name.parse(each));
        const apex = Name.parse("dns.");
        const answers = new ExternalAnswers({ cluster, zones, apex, ttl: 5, headless });
        const handler = new ExternalHandler(answers, NO_FALLTHROUGH);
        store.subscribe((change) => handler.forgetAnswers(change));
        const asker = PluginTest.of(k8sExternal, "k8s_external example.org", { clock });
        const ask = (asked: ExternalHandler, question: { name: string; type: string }) => {
          const outcome = asked.handle(asker.query(question), (query) => query.fail());
          return outcome instanceof Promise ? "asks elsewhere" : text(outcome);
        };
        for (const each of [() => undefined, ...steps]) {
          each(store, clock);
          const forgetful = new ExternalHandler(answers, NO_FALLTHROUGH);
          for (const question of QUESTIONS)
            assert.equal(ask(handler, question), ask(forgetful, question), JSON.stringify(question));
        }
      }),
      { numRuns: 60 },
    );
  });
