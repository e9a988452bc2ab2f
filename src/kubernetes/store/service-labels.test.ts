/** Services found by the octets of a name, and names made of them, against the ways over texts. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { ServiceIndex } from "./services/service-index.ts";
import { ChangeRecorder } from "./tables/store-change.ts";

const label = fc
  .tuple(fc.constantFrom("a", "ab", "web-0", "x"), fc.integer({ min: 1, max: 63 }))
  .map(([text, length]) => text.repeat(length).slice(0, length));
const pair = fc.tuple(label, label);

function put(index: ServiceIndex, namespace: string, name: string): void {
  const service = {
    namespace,
    name,
    type: "clusterIP",
    clusterAddresses: [],
    externalName: "",
    ports: [],
    publishNotReadyAddresses: false,
    externalAddresses: [],
  } as const;
  index.putService(service, new ChangeRecorder());
}

function find(index: ServiceIndex, namespace: string, name: string) {
  const asked = Name.fromLabels(["_http", name.toUpperCase(), namespace, "svc"]);
  return index.findLabels({
    octets: asked.folded,
    serviceAt: asked.labelStart(1),
    namespaceAt: asked.labelStart(2),
  });
}

describe("ServiceIndex.findLabels", () => {
  it("finds what is found by texts", () => {
    fc.assert(
      fc.property(fc.array(pair, { maxLength: 20 }), fc.array(pair, { maxLength: 20 }), (there, others) => {
        const index = new ServiceIndex();
        for (const [namespace, name] of there) put(index, namespace, name);
        for (const [namespace, name] of [...there, ...others]) {
          const found = find(index, namespace, name);
          assert.equal(found?.slot, index.find(namespace, name)?.slot);
          assert.equal(found?.key, index.find(namespace, name)?.key);
        }
      }),
      { numRuns: 50 },
    );
  });

  it("finds namespaces that exist, and no others", () => {
    const index = new ServiceIndex();
    put(index, "shop", "web");
    const { folded } = Name.parse("web.shop.");
    const labels = { octets: folded, serviceAt: 0, namespaceAt: 4 };
    assert.equal(index.hasNamespaceLabel(labels), false);
    index.putNamespace({ namespace: "", name: "shop" }, new ChangeRecorder());
    assert.equal(index.hasNamespaceLabel(labels), true);
    assert.equal(index.hasNamespaceLabel({ ...labels, namespaceAt: 0 }), false);
  });
});

describe("ServiceEntry.nameBelow", () => {
  const suffix = Name.parse("svc.cluster.local.");

  it("makes the name that texts make", () => {
    fc.assert(
      fc.property(pair, fc.option(label, { nil: undefined }), ([namespace, name], first) => {
        const index = new ServiceIndex();
        put(index, namespace, name);
        const labels = first === undefined ? [name, namespace] : [first, name, namespace];
        const made = find(index, namespace, name)?.nameBelow(suffix, first);
        assert.equal(made?.toString(), Name.fromLabels(labels, suffix).toString());
      }),
      { numRuns: 100 },
    );
  });

  it("leaves to texts what is no label of ASCII, or too long", () => {
    const index = new ServiceIndex();
    put(index, "shop", "web");
    put(index, "shop", "ñ");
    put(index, "shop", "x".repeat(64));
    const web = index.find("shop", "web");
    for (const first of ["", "db-0.east", "ñ", "x".repeat(64)])
      assert.equal(web?.nameBelow(suffix, first), undefined);
    assert.equal(index.find("shop", "ñ")?.nameBelow(suffix), undefined);
    assert.equal(index.find("shop", "x".repeat(64))?.nameBelow(suffix), undefined);
    const long = Name.parse(`${`${"y".repeat(60)}.`.repeat(4)}`);
    assert.equal(web?.nameBelow(long, "a".repeat(10)), undefined);
    assert.equal(web?.nameBelow(long)?.wire.length, 254);
  });
});
