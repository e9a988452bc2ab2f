/**
 * The option `kube_dns`: recorded behaviour of kube-dns (docs/spec/kube-dns.md#record-tree,
 * docs/spec/kube-dns.md#reverse-lookups and docs/spec/kube-dns.md#lookup).
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Flag, Rcode, rcodeName } from "../../dns/numbers.ts";
import { kubeDnsLabel } from "../../kubernetes/answers/kube-dns-label.ts";
import type { Next } from "../../plugin/index.ts";
import { Answer, answering, makeTestQuery, PluginTest, records } from "../../plugin/testing.ts";
import kubernetes from "./index.ts";

const service = (name: string, spec: object) =>
  JSON.stringify({ apiVersion: "v1", kind: "Service", metadata: { namespace: "default", name }, spec });
const http = { name: "http", port: 80, protocol: "TCP" };

/** The cluster in the recordings. */
const CLUSTER = {
  "web.json": service("web", {
    clusterIP: "10.0.0.10",
    ports: [http, { name: "dns", port: 53, protocol: "UDP" }],
  }),
  "dual.json": service("dual", {
    clusterIP: "10.0.0.11",
    clusterIPs: ["10.0.0.11", "fd00::11"],
    ports: [http],
  }),
  "db.json": service("db", { clusterIP: "None", ports: [{ name: "sql", port: 3306, protocol: "TCP" }] }),
  "db-endpoints.json": JSON.stringify({
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: { namespace: "default", name: "db" },
    subsets: [
      {
        addresses: [{ ip: "172.16.0.1", hostname: "db-0" }, { ip: "172.16.0.2" }],
        notReadyAddresses: [{ ip: "172.16.0.3", hostname: "db-2" }],
        ports: [{ name: "sql", port: 3306, protocol: "TCP" }],
      },
    ],
  }),
  "empty.json": service("empty", { clusterIP: "None" }),
  "ext.json": service("ext", { type: "ExternalName", externalName: "www.example.com" }),
  "exti.json": service("exti", { type: "ExternalName", externalName: "web.default.svc.cluster.local" }),
};

const WEB = "web.default.svc.cluster.local.";
const DB = "db.default.svc.cluster.local.";
const WEB_HASH = "32643961613639.web.default.svc.cluster.local.";

/** Name below the zone, type, rcode, then answer and additional without TTL and class. */
const ROWS: readonly (readonly [
  name: string,
  type: string,
  rcode: string,
  answer: string[],
  more?: string[],
])[] = [
  ["web.default.svc", "A", "NOERROR", [`${WEB} A 10.0.0.10`]],
  ...["AAAA", "TXT", "MX", "NS", "HINFO"]
    .map((type) => ["web.default.svc", type, "NOERROR", []] as const)
    .map(([name, type, rcode]) => [name, type, rcode, [] as string[]] as const),
  ["web.default.svc", "CNAME", "NXDOMAIN", []],
  ["web.default.svc", "SRV", "NOERROR", [`${WEB} SRV 10 100 0 ${WEB_HASH}`], [`${WEB_HASH} A 10.0.0.10`]],
  [
    "_http._tcp.web.default.svc",
    "SRV",
    "NOERROR",
    [`_http._tcp.${WEB} SRV 10 100 80 ${WEB}`],
    [`${WEB} A 10.0.0.10`],
  ],
  ["_http._tcp.web.default.svc", "A", "NOERROR", [`_http._tcp.${WEB} CNAME ${WEB}`, `${WEB} A 10.0.0.10`]],
  ...["_nope._tcp.web", "_http._udp.web", "_tcp.web", "*._tcp.web"].map(
    (name) => [`${name}.default.svc`, "SRV", "NXDOMAIN", [] as string[]] as const,
  ),
  [
    "_http._tcp.dual.default.svc",
    "SRV",
    "NOERROR",
    ["_http._tcp.dual.default.svc.cluster.local. SRV 10 50 80 dual.default.svc.cluster.local."],
    ["dual.default.svc.cluster.local. A 10.0.0.11", "dual.default.svc.cluster.local. AAAA fd00::11"],
  ],
  ["nosuch.default.svc", "A", "NXDOMAIN", []],
  ["web.nons.svc", "A", "NXDOMAIN", []],
  ["svc", "A", "NXDOMAIN", []],
  ["", "A", "NXDOMAIN", []],
  ["", "NS", "NXDOMAIN", []],
  ["", "DNSKEY", "NXDOMAIN", []],
  ["dns-version", "TXT", "NXDOMAIN", []],
  ["ext.default.svc", "CNAME", "NOERROR", ["ext.default.svc.cluster.local. CNAME www.example.com."]],
  ["ext.default.svc", "SRV", "NOERROR", ["ext.default.svc.cluster.local. SRV 10 100 0 www.example.com."]],
  [
    "exti.default.svc",
    "A",
    "NOERROR",
    [`exti.default.svc.cluster.local. CNAME ${WEB}`, `${WEB} A 10.0.0.10`],
  ],
  ["exti.default.svc", "AAAA", "NOERROR", []],
  ["sub.ext.default.svc", "A", "NXDOMAIN", []],
  ["db.default.svc", "A", "NOERROR", [`${DB} A 172.16.0.1`, `${DB} A 172.16.0.2`]],
  ["db-0.db.default.svc", "A", "NOERROR", [`db-0.${DB} A 172.16.0.1`]],
  ["3330643763643165.db.default.svc", "A", "NOERROR", [`3330643763643165.${DB} A 172.16.0.2`]],
  ["db-2.db.default.svc", "A", "NXDOMAIN", []],
  [
    "_sql._tcp.db.default.svc",
    "SRV",
    "NOERROR",
    [`_sql._tcp.${DB} SRV 10 50 3306 db-0.${DB}`, `_sql._tcp.${DB} SRV 10 50 3306 3330643763643165.${DB}`],
    [`db-0.${DB} A 172.16.0.1`, `3330643763643165.${DB} A 172.16.0.2`],
  ],
  [
    "_sql._tcp.db.default.svc",
    "A",
    "NOERROR",
    [`_sql._tcp.${DB} CNAME db-0.${DB}`, `db-0.${DB} A 172.16.0.1`, `3330643763643165.${DB} A 172.16.0.2`],
  ],
  ["empty.default.svc", "A", "NXDOMAIN", []],
  ["empty.default.svc", "SRV", "NXDOMAIN", []],
  ["172-16-0-2.db.default.svc", "A", "NXDOMAIN", []],
  ["1-2-3-4.default.pod", "A", "NOERROR", ["1-2-3-4.default.pod.cluster.local. A 1.2.3.4"]],
  ["1-2-3-4.missing.pod", "A", "NOERROR", ["1-2-3-4.missing.pod.cluster.local. A 1.2.3.4"]],
  ["1-2-3-4.default.pod", "AAAA", "NOERROR", []],
  ["1-2-3.default.pod", "A", "NOERROR", []],
  ["fd00--1.default.pod", "AAAA", "NOERROR", []],
  ["default.pod", "A", "NXDOMAIN", []],
  ["web.*.svc", "A", "NOERROR", ["web.*.svc.cluster.local. A 10.0.0.10"]],
  ["*.web.default.svc", "A", "NOERROR", ["*.web.default.svc.cluster.local. A 10.0.0.10"]],
  ["web.default.*", "A", "NOERROR", ["web.default.*.cluster.local. A 10.0.0.10"]],
  ["any.default.svc", "A", "NXDOMAIN", []],
];

describe("kube_dns", () => {
  const folder = mkdtempSync(join(tmpdir(), "portolan-kube-dns-"));
  let plugin: ReturnType<typeof make>;

  before(async () => {
    for (const [name, text] of Object.entries(CLUSTER)) writeFileSync(join(folder, name), text);
    plugin = make("");
    await plugin.start();
  });
  after(async () => {
    await plugin.stop();
    rmSync(folder, { recursive: true });
  });

  function make(options: string) {
    return PluginTest.of(
      kubernetes,
      `kubernetes cluster.local in-addr.arpa ip6.arpa {\n kube_dns\n ttl 30\n manifests ${folder}\n${options}\n}`,
    );
  }

  async function ask(name: string, type: string, next?: Next) {
    const answer = await plugin.ask({ name, type, ...(next && { next }) });
    const short = (record: string) => record.replace(/ (\d+) IN /, " ");
    return {
      rcode: rcodeName(answer.rcode),
      answer: answer.answer.map(short),
      additional: answer.additional.map(short),
      full: answer,
    };
  }

  for (const [name, type, rcode, answer, additional = []] of ROWS) {
    test(`${name || "the zone"} ${type} is ${rcode}`, async () => {
      const asked = name === "" ? "cluster.local." : `${name}.cluster.local.`;
      // The second answer may be a memoized one.
      for (let times = 0; times < 2; times++) {
        const found = await ask(asked, type);
        assert.equal(found.rcode, rcode);
        assert.deepEqual([found.answer, found.additional], [answer, additional]);
        const flags = found.full.reply.flags & (Flag.AA | Flag.RA);
        assert.equal(flags, rcode === "NXDOMAIN" ? 0 : Flag.AA | Flag.RA);
        const [authority] = found.full.authority;
        if (answer.length > 0) assert.equal(authority, undefined);
        else
          assert.match(
            authority ?? "",
            /^cluster\.local\. 60 IN SOA ns\.dns\.cluster\.local\. hostmaster\.cluster\.local\. \d+ 28800 7200 604800 60$/,
          );
        for (const record of found.full.answer) assert.match(record, / 30 IN /);
      }
    });
  }

  test("refuses ANY", async () => {
    await assert.rejects(ask(WEB, "ANY"), { message: /rcode 5/ });
  });

  test("names every ExternalName of a namespace for the namespace itself, one alias of them", async () => {
    for (const name of ["default.svc.cluster.local.", "*.default.svc.cluster.local."])
      assert.deepEqual((await ask(name, "A")).answer, [`${name} CNAME ${WEB}`, `${WEB} A 10.0.0.10`]);
  });

  test("shows the zone's SOA for an hour", async () => {
    const [record = ""] = (await ask("cluster.local.", "SOA")).full.answer;
    assert.match(record, /^cluster\.local\. 3600 IN SOA /);
    assert.equal(Number(record.split(" ")[6]) % 3600, 0);
  });

  test("gives an alias and its target the same TTL", async () => {
    const chain = plugin.chain(answering({ answer: records("www.example.com. 20 IN A 192.0.2.53") }));
    const outcome = await chain(makeTestQuery({ name: "ext.default.svc.cluster.local." }, 0, chain));
    assert.ok(outcome.kind === "reply");
    const answer = new Answer(outcome);
    assert.deepEqual(answer.answer, [
      "ext.default.svc.cluster.local. 20 IN CNAME www.example.com.",
      "www.example.com. 20 IN A 192.0.2.53",
    ]);
  });

  for (const [name, target] of [
    ["10.0.0.10.in-addr.arpa.", WEB],
    [`1.1.0.0.${"0.".repeat(24)}0.0.d.f.ip6.arpa.`, "dual.default.svc.cluster.local."],
    ["1.0.16.172.in-addr.arpa.", `db-0.${DB}`],
  ] as const) {
    test(`${name.slice(0, 12)}... is ${target}`, async () => {
      const found = await ask(name, "PTR");
      assert.deepEqual(found.answer, [`${name} PTR ${target}`]);
      assert.equal(found.full.reply.flags & (Flag.AA | Flag.RA), Flag.RA);
    });
  }

  test("does not deny the names between a reverse zone and an address", async () => {
    for (const name of ["0.0.10.in-addr.arpa.", "10.in-addr.arpa.", "d.f.ip6.arpa."]) {
      for (const type of ["PTR", "NS"]) {
        const { rcode, answer, full } = await ask(name, type);
        assert.deepEqual([rcode, answer], ["NOERROR", []], name);
        assert.match(full.authority.join(), / SOA /);
      }
    }
    assert.equal((await ask("9.9.in-addr.arpa.", "PTR")).rcode, "NXDOMAIN");
  });

  test("passes addresses without a name on, if configured", async () => {
    const other = make("fallthrough in-addr.arpa ip6.arpa");
    await other.start();
    const next = answering({ answer: records("elsewhere. 5 IN A 192.0.2.1") });
    for (const name of ["2.0.16.172.in-addr.arpa.", "9.9.9.9.in-addr.arpa."])
      assert.equal((await other.ask({ name, type: "PTR", next })).answer.length, 1);
    assert.equal((await other.ask({ name: "no.default.svc.cluster.local.", next })).rcode, Rcode.NXDOMAIN);
    await other.stop();
  });

  test("makes the same labels for addresses as kube-dns", () => {
    for (const [address, label] of [
      ["10.0.0.1", "3234633364383235"],
      ["10.0.0.2", "6661613463623165"],
      ["1.2.3.4", "6263626163303737"],
      ["2001:db8::1", "3537393061303264"],
      ["10.0.0.10", "32643961613639"],
      ["172.16.0.2", "3330643763643165"],
    ] as const)
      assert.equal(kubeDnsLabel(address), label);
  });
});
