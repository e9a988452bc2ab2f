import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { Name } from "../../dns/name.ts";
import { parseClusterName } from "./name-grammar.ts";

const zone = Name.parse("cluster.local.");

/** The members that say something, as `member=value`. */
function meaning(labels: string, { zonal = false, multicluster = false } = {}): string {
  const name = Name.parse(labels === "" ? "cluster.local." : `${labels}.cluster.local.`);
  const parsed = parseClusterName(name, zone, { zonal, multicluster });
  const { kind, namespace, service, endpoint, cluster, port, protocol, topologyZone, prefer } = parsed;
  const members = { namespace, service, endpoint, cluster, port, protocol, topologyZone, prefer };
  const said = Object.entries(members).filter(([, value]) => value !== "" && value !== false);
  return [kind, ...said.map(([key, value]) => `${key}=${value}`)].join(" ");
}

describe("parseClusterName", () => {
  const cases: [labels: string, meaning: string][] = [
    ["", "apex"],
    ["dns-version", "dnsVersion"],
    ["x.dns-version", "invalid"],
    ["ns.dns", "nameServer"],
    ["dns", "invalid"],
    ["x.ns.dns", "invalid"],
    ["svc", "container"],
    ["POD", "container"],
    ["foo", "invalid"],
    ["web.shop", "invalid"],
    ["shop.svc", "namespace namespace=shop"],
    ["web.shop.svc", "service namespace=shop service=web"],
    ["Web.Shop.SVC", "service namespace=shop service=web"],
    ["svc.svc.svc", "service namespace=svc service=svc"],
    ["pod.shop.svc", "service namespace=shop service=pod"],
    ["a.web.shop.svc", "endpoint namespace=shop service=web endpoint=a"],
    ["_http._tcp.web.shop.svc", "port namespace=shop service=web port=http protocol=tcp"],
    ["http.tcp.web.shop.svc", "port namespace=shop service=web port=http protocol=tcp"],
    ["__x._tcp.web.shop.svc", "port namespace=shop service=web port=_x protocol=tcp"],
    ["a._http._tcp.web.shop.svc", "invalid"],
    ["shop.pod", "podNamespace namespace=shop"],
    ["1-2-3-4.shop.pod", "pod namespace=shop endpoint=1-2-3-4"],
    ["x.1-2-3-4.shop.pod", "invalid"],
    ["a\\.b.shop.svc", "service namespace=shop service=a.b"],
    ["a.pin._zone.web.shop.svc", "invalid"],
  ];
  for (const [labels, expected] of cases) {
    it(`"${labels}" is ${expected}`, () => assert.equal(meaning(labels), expected));
  }

  const zonal: [labels: string, meaning: string][] = [
    ["a.pin._zone.db.shop.svc", "zonal namespace=shop service=db topologyZone=a"],
    ["a.b.prefer._zone.db.shop.svc", "zonal namespace=shop service=db topologyZone=a.b prefer=true"],
    ["a.near._zone.db.shop.svc", "invalid"],
    ["pin._zone.db.shop.svc", "port namespace=shop service=db port=pin protocol=zone"],
  ];
  for (const [labels, expected] of zonal) {
    it(`with zonal "${labels}" is ${expected}`, () =>
      assert.equal(meaning(labels, { zonal: true }), expected));
  }

  const multicluster: [labels: string, meaning: string][] = [
    ["web.shop.svc", "service namespace=shop service=web"],
    ["a.east.web.shop.svc", "endpoint namespace=shop service=web endpoint=a.east cluster=east"],
    ["a.web.shop.svc", "endpoint namespace=shop service=web endpoint=a"],
    ["a\\.east.web.shop.svc", "invalid"],
    ["_http._tcp.web.shop.svc", "port namespace=shop service=web port=http protocol=tcp"],
    ["_http.tcp.web.shop.svc", "port namespace=shop service=web port=http protocol=tcp"],
    ["http._tcp.web.shop.svc", "port namespace=shop service=web port=http protocol=tcp"],
    ["b.a.east.web.shop.svc", "invalid"],
  ];
  for (const [labels, expected] of multicluster) {
    it(`with multicluster "${labels}" is ${expected}`, () =>
      assert.equal(meaning(labels, { multicluster: true }), expected));
  }

  it("gives a meaning to every name below the zone", () => {
    const label = fc.constantFrom(
      "svc",
      "pod",
      "_zone",
      "pin",
      "prefer",
      "a",
      "_tcp",
      "dns",
      "ns",
      "dns-version",
    );
    fc.assert(
      fc.property(
        fc.array(label, { maxLength: 8 }),
        fc.boolean(),
        fc.boolean(),
        (labels, zonal, multicluster) => {
          const name = Name.fromLabels(labels, zone);
          const { kind, service } = parseClusterName(name, zone, { zonal, multicluster });
          assert.equal(service !== "", ["service", "endpoint", "port", "zonal"].includes(kind));
        },
      ),
    );
  });
});
