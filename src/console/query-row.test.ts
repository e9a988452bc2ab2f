import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Name } from "../dns/name.ts";
import { parseRecordType } from "../dns/type-names.ts";
import { parseIpAddress } from "../lib/net/ip-address.ts";
import { FinishedQuery } from "../plugin/stream/query-reader.ts";
import { RequestError } from "./http/request-error.ts";
import { QueryFilter, queryRow } from "./query-row.ts";
import { Workloads } from "./workloads.ts";

class Fleet extends Workloads {
  override of(address: string): string | undefined {
    return address === "10.1.0.7" ? "shop/web-1" : undefined;
  }
}

const WORKLOADS = new Fleet(
  () => undefined,
  () => 0,
);

interface Asked {
  readonly name?: string;
  readonly client?: string;
  readonly type?: string;
  readonly rcode?: number | undefined;
  readonly duration?: number;
  readonly plugin?: string;
}

function finished({
  name = "Web.Example.org.",
  client = "10.1.0.7",
  type = "A",
  ...part
}: Asked = {}): FinishedQuery {
  const address = parseIpAddress(client) ?? new Uint8Array(0);
  const octets = new Uint8Array([...address, ...Name.parse(name).wire]);
  return Object.assign(
    new FinishedQuery(),
    {
      time: 1_000.5,
      rcode: 0,
      duration: 12.34567,
      plugin: "cache",
      type: parseRecordType(type),
      port: 5,
      id: 6,
    },
    { octets, clientStart: 0, nameStart: address.length, nameEnd: octets.length, listener: "dns://:53" },
    part,
  );
}

test("a row says it as people do", () => {
  const { time, name, type, rcode, client, workload, duration, port, id } = queryRow(finished(), WORKLOADS);
  assert.deepEqual(
    [time, name, type, rcode, client, workload, duration, port, id],
    [1_000.5, "Web.Example.org.", "A", "NOERROR", "10.1.0.7", "shop/web-1", 12.346, 5, 6],
  );
  const other = queryRow(finished({ client: "2001:db8::1", rcode: undefined }), WORKLOADS);
  assert.deepEqual(
    [other.client, other.rcode, "workload" in other, "ttl" in other],
    ["2001:db8::1", "-", false, false],
  );
});

describe("a filter", () => {
  for (const [filter, wanted, unwanted] of [
    ["name=eXample.org", {}, { name: "example.net." }],
    ["name=example.org.", { name: "a.EXAMPLE.org." }, { name: "notexample.org." }],
    ["namespace=shop", {}, { client: "10.1.0.8" }],
    ["workload=shop/web", {}, { client: "10.1.0.8" }],
    ["client=10.1.0.0/24", {}, { client: "10.1.1.7" }],
    ["client=2001:db8::/32", { client: "2001:db8::9" }, {}],
    ["type=aaaa", { type: "AAAA" }, {}],
    ["rcode=nxdomain", { rcode: 3 }, {}],
    ["rcode=error", { rcode: 2 }, { rcode: 3 }],
    ["rcode=error", { rcode: undefined }, {}],
    ["rcode=-", { rcode: undefined }, {}],
    ["slower=12ms", {}, { duration: 11.9 }],
    ["slower=12", {}, { duration: 11.9 }],
    ["by=cache", {}, { plugin: "forward" }],
    ["name=web&rcode=nxdomain", { rcode: 3 }, {}],
    ["name=&type=", {}, undefined],
  ] as const) {
    test(filter, () => {
      const tested = new QueryFilter(new URLSearchParams(filter), WORKLOADS);
      assert.ok(tested.wants(finished(wanted)));
      if (unwanted !== undefined) assert.ok(!tested.wants(finished(unwanted)));
    });
  }

  for (const [filter, message] of [
    ["client=10.1", /client: 10\.1 is not an IP address/],
    ["type=QQ", /type: QQ is not a record type/],
    ["rcode=bad", /rcode: bad is not an rcode/],
    ["slower=soon", /slower: soon is not a duration/],
    ["slower=-5s", /slower: -5s is not a duration/],
    [`name=${"a".repeat(1_025)}`, /^name: at most 1024 characters$/],
    ["name=a..b.", /name: a\.\.b\. is not a domain name: empty label$/],
  ] as const) {
    test(`refuses ${filter.slice(0, 40)}`, () => {
      assert.throws(
        () => new QueryFilter(new URLSearchParams(filter), WORKLOADS),
        (error) => error instanceof RequestError && error.status === 400 && message.test(error.message),
      );
    });
  }
});
