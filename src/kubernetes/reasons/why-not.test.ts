/** The reasons for each rule of the specification that leaves a question without answer. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { Name } from "../../dns/name.ts";
import { parseRecordType } from "../../dns/type-names.ts";
import { FakeClock } from "../../lib/time/clock.ts";
import { ClusterAnswers } from "../answers/cluster-answers.ts";
import type { ClusterViewOptions } from "../answers/cluster-view.ts";
import { ManifestSource } from "../manifests/manifest-source.ts";
import { LabelSelector } from "../objects/label-selector.ts";
import { KINDS, type Kind } from "../objects/objects.ts";
import { SharedValues } from "../objects/shared-values.ts";
import { ClusterStore } from "../store/store.ts";
import { whyAliasEnds, whyNot } from "./why-not.ts";

const FOLDER = fileURLToPath(new URL("../../../test/fixtures/kubernetes", import.meta.url));

interface Cluster {
  readonly title: string;
  readonly view?: Partial<ClusterViewOptions>;
  readonly namespaceLabels?: string;
  readonly zonal?: boolean;
  readonly kinds?: readonly Kind[];
  readonly cases: readonly (readonly [name: string, type: string, reason: string])[];
}

const CLUSTERS: readonly Cluster[] = [
  {
    title: "everything is shown",
    zonal: true,
    cases: [
      ["nosuch.shop.svc", "A", "there is no Service nosuch in namespace shop, nor in any other"],
      ["wbe.shop.svc", "A", "there is no Service wbe in namespace shop, nor in any other; is web meant?"],
      ["web.default.svc", "A", "Service web exists in namespace shop, not in default"],
      ["*.shop.svc", "A", "wildcards are not served: there is no Service * in namespace shop"],
      ["web.nons.svc", "A", "there is no namespace nons; Service web exists in namespace shop"],
      ["nosuch.shopp.svc", "A", "there is no namespace shopp; is shop meant?"],
      ["nons.svc", "A", "there is no namespace nons"],
      ["shop.svc", "A", "namespace shop exists; it has services below it and no records of its own"],
      ["svc", "A", "the name only holds namespaces, and has no records of its own"],
      ["web.shop", "A", "Service shop/web has its name below svc: web.shop.svc.cluster.local."],
      ["web", "A", "Service web exists in namespace shop; its name is web.shop.svc.cluster.local."],
      [
        "foo.bar.baz",
        "A",
        "names of the cluster stand below svc.cluster.local. or pod.cluster.local., and this one does not",
      ],
      ["a.b.c.web.shop.svc", "A", "no object has a name of 6 labels in front of cluster.local."],
      ["", "A", "there are no A records: the zone itself has SOA and NS at most"],
      ["dns-version", "A", "there are no A records: dns-version has TXT at most"],
      ["ns.dns", "TXT", "there are no TXT records: the name server has A and AAAA at most"],
      ["web.shop.svc", "AAAA", "Service shop/web exists, but it has IPv4 addresses only and no IPv6 address"],
      ["six.shop.svc", "A", "Service shop/six exists, but it has IPv6 addresses only and no IPv4 address"],
      ["web.shop.svc", "TXT", "there are no TXT records: Service shop/web has A, AAAA and SRV at most"],
      [
        "db.shop.svc",
        "AAAA",
        "Service shop/db exists, but its endpoints have IPv4 addresses only and no IPv6 address",
      ],
      [
        "none.shop.svc",
        "A",
        "Service shop/none is headless: 1 endpoint, not ready, publishNotReadyAddresses is off",
      ],
      [
        "db-2.db.shop.svc",
        "A",
        "endpoint db-2 of Service shop/db is not ready, and publishNotReadyAddresses is off",
      ],
      ["bogus.db.shop.svc", "A", "Service shop/db has no endpoint bogus; it has db-0 and db-1"],
      [
        "bogus.idle.shop.svc",
        "A",
        "Service shop/idle shows no endpoint bogus: it has no endpoints: no slice names it, or its selector matches no pod",
      ],
      ["_http._udp.web.shop.svc", "SRV", "port http of Service shop/web is TCP, not UDP"],
      [
        "_nope._tcp.web.shop.svc",
        "SRV",
        "Service shop/web has no port _nope._tcp; it has _http._tcp and _https._tcp",
      ],
      [
        "_x._tcp.raw.shop.svc",
        "SRV",
        "Service shop/raw has ports without names only, so it has no names for ports",
      ],
      ["_tcp.web.shop.svc", "A", "_tcp only holds the names of ports, and has no records of its own"],
      ["db-0.db.shop.svc", "AAAA", "endpoint db-0 of Service shop/db has no IPv6 address"],
      ["_sql._tcp.db.shop.svc", "AAAA", "no endpoint of Service shop/db with this port has an IPv6 address"],
      ["_sql._udp.db.shop.svc", "SRV", "port sql of Service shop/db is TCP, not UDP"],
      [
        "_http._tcp.none.shop.svc",
        "SRV",
        "Service shop/none is headless: 1 endpoint, not ready, publishNotReadyAddresses is off",
      ],
      [
        "us-west-2a.near._zone.db.shop.svc",
        "A",
        "zonal names have pin or prefer in front of _zone, and need the option 'zonal'",
      ],
      [
        "us-west-2a.pin._zone.db.shop.svc",
        "AAAA",
        "no endpoint of Service shop/db there has an IPv6 address",
      ],
      ["nop.shop.svc", "SRV", "Service shop/nop exists, but it has no ports"],
      ["x.ext.shop.svc", "A", "Service shop/ext is an ExternalName, and nothing exists below such a name"],
      [
        "ipext.shop.svc",
        "A",
        "the externalName of Service shop/ipext is an IP address or no host name, so there is nothing to be an alias of",
      ],
      [
        "a.pin._zone.web.shop.svc",
        "A",
        "Service shop/web is not headless, and only headless services have zonal names",
      ],
      [
        "nowhere.pin._zone.db.shop.svc",
        "A",
        "no endpoint of Service shop/db that is ready is in the topology zone nowhere",
      ],
      ["10-244-3-40.shop.pod", "AAAA", "10.244.3.40 is an IPv4 address, and there is no AAAA record for it"],
      ["10-244-3-40.shop.pod", "TXT", "there are no TXT records: a pod has addresses only"],
      ["1-2-3.shop.pod", "A", "1-2-3 is not an IP address written with dashes, as in 10-244-1-5"],
      ["10-244-3-99.shop.pod", "A", "no running pod has the address 10.244.3.99"],
      [
        "10-244-3-40.default.pod",
        "A",
        "10.244.3.40 is the address of pod shop/client-1, not of a pod in namespace default",
      ],
      ["10-244-3-40.nons.pod", "A", "there is no namespace nons"],
      ["shop.pod", "A", "namespace shop exists; it has pods below it and no records of its own"],
      [
        "13.2.244.10.in-addr.arpa.",
        "PTR",
        "10.244.2.13 is an endpoint of Service shop/db that is not ready, and publishNotReadyAddresses is off",
      ],
      [
        "40.3.244.10.in-addr.arpa.",
        "PTR",
        "10.244.3.40 is the address of pod shop/client-1, which is behind no Service",
      ],
      ["9.9.9.9.in-addr.arpa.", "PTR", "neither a Service nor an endpoint has the address 9.9.9.9"],
      [
        "96.10.in-addr.arpa.",
        "PTR",
        "addresses of the cluster have names below it, and it has no records of its own",
      ],
      [
        "9.9.in-addr.arpa.",
        "PTR",
        "the name is not that of a whole address, and no address of the cluster has a name below it",
      ],
      [
        "dns.in-addr.arpa.",
        "A",
        "the name server of the zone has its name below it, and it has no records of its own",
      ],
      [
        "1.0.96.10.in-addr.arpa.",
        "A",
        "there are no A records: an address that the cluster knows has PTR at most",
      ],
      ["in-addr.arpa.", "A", "there are no A records: the zone itself has SOA and NS at most"],
    ],
  },
  {
    title: "namespaces default",
    view: { namespaces: new Set(["default"]) },
    cases: [
      ["web.shop.svc", "A", "namespace shop is not selected by 'namespaces'"],
      ["nons.svc", "A", "there may be a namespace nons but it is not selected by 'namespaces'"],
      [
        "5.20.96.10.in-addr.arpa.",
        "PTR",
        "10.96.20.5 belongs to Service shop/web, whose namespace is not selected",
      ],
      [
        "5.1.244.10.in-addr.arpa.",
        "PTR",
        "10.244.1.5 is an endpoint of Service shop/web, whose namespace is not selected",
      ],
    ],
  },
  {
    title: "namespace_labels",
    view: { namespacesBySelector: true },
    namespaceLabels: "kubernetes.io/metadata.name in (default)",
    cases: [
      ["web.shop.svc", "A", "namespace shop is not selected by 'namespace_labels'"],
      [
        "kubernetes.shop.svc",
        "A",
        "namespace shop is not selected by 'namespace_labels'; Service kubernetes exists in namespace default",
      ],
      ["web.nons.svc", "A", "there is no namespace nons that 'namespace_labels' selects"],
    ],
  },
  {
    title: "noendpoints and labels",
    kinds: ["namespaces", "services"],
    view: { objectsBySelector: true },
    cases: [
      [
        "db.shop.svc",
        "A",
        "Service shop/db is headless: 'noendpoints' is in force, so its endpoints are not known",
      ],
      [
        "nosuch.shop.svc",
        "A",
        "there is no Service nosuch that 'labels' selects in namespace shop, nor in any other",
      ],
      [
        "11.1.244.10.in-addr.arpa.",
        "PTR",
        "no Service has the address 10.244.1.11, and 'noendpoints' is in force",
      ],
    ],
  },
  {
    title: "pods disabled, ignore empty_service",
    view: { pods: "disabled", ignoreEmptyServices: true },
    cases: [
      ["10-244-3-40.shop.pod", "A", "'pods disabled' is in force: pods have no names"],
      ["shop.pod", "A", "'pods disabled' is in force: pods have no names"],
      [
        "idle.shop.svc",
        "A",
        "Service shop/idle: it has no endpoints: no slice names it, or its selector matches no pod, and 'ignore empty_service' hides such services",
      ],
    ],
  },
];

for (const { title, view = {}, namespaceLabels, zonal = false, kinds = KINDS, cases } of CLUSTERS) {
  describe(`why there is no answer: ${title}`, () => {
    const clock = new FakeClock();
    const store = new ClusterStore({ clock, kinds });
    const answers = new ClusterAnswers({
      store,
      zones: ["cluster.local.", "in-addr.arpa.", "ip6.arpa."].map((zone) => Name.parse(zone)),
      ttl: 5,
      pods: "verified",
      ignoreEmptyServices: false,
      ownAddresses: () => [],
      zonal,
      ...view,
    });
    let source: ManifestSource;

    before(async () => {
      source = new ManifestSource({
        store,
        paths: [FOLDER],
        clock,
        endpointPodNames: false,
        reduce: { zones: zonal, shared: new SharedValues() },
        ...(namespaceLabels !== undefined && { namespaceLabels: LabelSelector.parse(namespaceLabels) }),
      });
      await source.start();
    });
    after(() => source.stop());

    for (const [text, type, reason] of cases) {
      it(`${text} ${type}`, () => {
        const name = Name.parse(text.endsWith(".") ? text : `${text}${text === "" ? "" : "."}cluster.local.`);
        const zone = answers.zoneOf(name) ?? assert.fail("not in a zone");
        const number = parseRecordType(type) ?? assert.fail("no such type");
        const resolution = answers.resolve(name, number, zone);
        assert.deepEqual(resolution.answer, []);
        assert.equal(resolution.alias, undefined);
        assert.equal(whyNot({ answers, zone, name, type: number, resolution }), reason);
      });
    }

    if (namespaceLabels !== undefined || view.namespaces !== undefined) return;
    it("follows aliases to where they end", () => {
      const why = (service: string): string =>
        whyAliasEnds(answers, Name.parse(`${service}.shop.svc.cluster.local.`), 1);
      assert.equal(why("loop"), "an alias of loop.shop.svc.cluster.local., which leads in a circle");
      assert.match(why("dangling"), /^an alias of [a-z.]+\.: there is no (Service|namespace) [a-z]+/);
    });
  });
}
