/** Queries that no plugin of their block answers: the rcodes of CoreDNS, and what becomes of aliases to such names. */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { rcodeName } from "../../src/dns/index.ts";
import { createServer } from "../../src/index.ts";

const ZONE = `example.org. 60 IN SOA ns.example.org. host.example.org. 1 2 3 4 5
example.org. 60 IN NS ns.example.org.
out.example.org. 60 IN CNAME www.example.com.
`;

const PAYMENTS = `apiVersion: v1
kind: Service
metadata: {name: payments, namespace: shop}
spec: {type: ExternalName, externalName: www.example.com}
`;

async function asked(plugins: string, name: string, type = "A"): Promise<[string, readonly string[]]> {
  const folder = await mkdtemp(join(tmpdir(), "portolan-nothing-"));
  try {
    await writeFile(join(folder, "shop.yaml"), PAYMENTS);
    await writeFile(join(folder, "zone"), ZONE);
    const corefile = `.:0 {\n bind 127.0.0.1\n${plugins.replaceAll("$DIR", folder)}\n}\n`;
    const server = await createServer({ corefile });
    await using _stopped = server;
    await server.start();
    const { rcode, answer } = await server.ask({ name, type });
    return [rcodeName(rcode), answer];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const VIEW = "view v {\n expr true\n }";
const KUBERNETES = "kubernetes cluster.local {\n manifests $DIR\n }";
const ALIAS = "payments.shop.svc.cluster.local. 5 IN CNAME www.example.com.";

describe("rcode of a name that no plugin answers", () => {
  for (const [plugins, rcode] of [
    ["", "REFUSED"],
    ["root .", "REFUSED"],
    ["metadata", "SERVFAIL"],
    [VIEW, "SERVFAIL"],
    [`metadata\n ${VIEW}`, "SERVFAIL"],
    ["errors", "SERVFAIL"],
    ["nomad {\n address http://127.0.0.1:9\n }", "SERVFAIL"],
    ["file $DIR/zone example.org", "REFUSED"],
    [`file $DIR/zone example.org\n ${VIEW}`, "SERVFAIL"],
    [KUBERNETES, "SERVFAIL"],
  ] as const) {
    test(`${rcode} with ${JSON.stringify(plugins)}`, async () => {
      assert.deepEqual(await asked(plugins, "www.example.com"), [rcode, []]);
    });
  }
});

describe("an alias of the cluster to a name that no plugin answers comes alone", () => {
  for (const plugins of [
    "",
    "errors\n cache",
    "metadata",
    "forward example.net 127.0.0.1:9",
    "hosts {\n 192.0.2.1 other.example.\n fallthrough\n }",
    "file $DIR/zone example.org",
  ]) {
    test(`with ${JSON.stringify(plugins)}`, async () => {
      const given = await asked(`${KUBERNETES}\n ${plugins}`, "payments.shop.svc.cluster.local");
      assert.equal(given[0], "NOERROR");
      assert.deepEqual(given[1], [ALIAS]);
    });
  }
});

test("so does an alias of a zone file", async () => {
  const given = await asked("file $DIR/zone example.org", "out.example.org");
  assert.deepEqual(given, ["NOERROR", ["out.example.org. 60 IN CNAME www.example.com."]]);
});

test("if the upstream for the target does not answer, the query fails", async () => {
  const plugins = `${KUBERNETES}\n forward . 127.0.0.1:9 {\n max_connect_attempts 1\n }`;
  assert.deepEqual(await asked(plugins, "payments.shop.svc.cluster.local"), ["SERVFAIL", []]);
});
