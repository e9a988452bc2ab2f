/** Manifests as people write them: what is wrong is named with its place, the rest serves, and edits count at once. */
import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { rcodeName } from "../../src/dns/numbers.ts";
import { formatData } from "../../src/dns/resource-record.ts";
import { ask } from "../support/dns-client.ts";
import { Portolan, type PortolanOptions } from "../support/portolan.ts";

function service(name: string, address: string): string {
  return `apiVersion: v1
kind: Service
metadata:
  name: ${name}
  namespace: shop
spec:
  clusterIP: ${address}
  ports:
    - name: http
      port: 80
`;
}

const inJson = (name: string, address: string): object => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace: "shop" },
  spec: { clusterIP: address },
});

function start(files: PortolanOptions["files"]): Promise<Portolan> {
  return Portolan.start(
    (port) => `.:${port("dns")} {
      bind 127.0.0.1
      errors
      kubernetes cluster.local {
        manifests manifests
      }
    }`,
    { files: files ?? {} },
  );
}

/** The address of a Service, or the rcode where it has none. */
async function addressOf(server: Portolan, name: string): Promise<string> {
  const { rcode, answer } = await ask(server, `${name}.shop.svc.cluster.local`);
  return answer.length === 0 ? rcodeName(rcode) : answer.map(formatData).join();
}

/** Asks until the answer is this one. */
async function untilAddress(server: Portolan, name: string, expected: string): Promise<void> {
  const end = performance.now() + 30_000;
  let seen = await addressOf(server, name);
  for (; seen !== expected && performance.now() < end; await pause(50)) seen = await addressOf(server, name);
  assert.equal(seen, expected, server.log);
}

const ALIAS_BOMB = [
  "a: &a [x, x, x, x, x, x, x, x, x]",
  ..."bcdefghi".split("").map((name, n) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[n]}`)}]`),
  "apiVersion: v1",
  "kind: Service",
  "metadata: *i",
].join("\n");

describe("manifests", { concurrency: 3 }, () => {
  test("of every form are read", async () => {
    await using server = await start({
      "manifests/several.yaml": `${service("one", "10.0.0.1")}---\n${service("two", "10.0.0.2")}---\n---\n`,
      "manifests/deep/er/three.yml": service("three", "10.0.0.3"),
      "manifests/four.json": JSON.stringify(inJson("four", "10.0.0.4")),
      "manifests/list.json": JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: [inJson("five", "10.0.0.5"), inJson("six", "10.0.0.6")],
      }),
      "manifests/notes.txt": "not a manifest",
    });
    for (const [n, name] of ["one", "two", "three", "four", "five", "six"].entries())
      assert.equal(await addressOf(server, name), `10.0.0.${n + 1}`);
    assert.doesNotMatch(server.log, /\[ERROR\]/);
  });

  test("that are wrong are named with file and line, and the others serve", async () => {
    const documents = [
      service("first", "10.0.0.1"),
      "this: is: not: yaml",
      service("second", "10.0.0.2"),
      "hello: world",
      "no mapping at all",
      service("third", "300.0.0.3"),
      service("fourth", "10.0.0.4"),
    ];
    await using server = await start({
      "manifests/shop.yaml": documents.map((text) => `${text.trimEnd()}\n`).join("---\n"),
      "manifests/half.json": '{"apiVersion": ',
      "manifests/bomb.yaml": ALIAS_BOMB,
      "manifests/octets.yaml": "\u0000\u0001\u0002",
      "manifests/list.json": JSON.stringify({
        apiVersion: "v1",
        kind: "List",
        items: [5, inJson("fifth", "10.0.0.5")],
      }),
    });
    const lines = server.log.split("\n").filter((line) => line.startsWith("[ERROR] plugin/kubernetes: "));
    for (const place of [
      "shop.yaml:12",
      "shop.yaml:25",
      "shop.yaml:27",
      "shop.yaml:29",
      "half.json:1",
      "bomb.yaml:1",
      "octets.yaml:1",
      "list.json:1",
    ])
      assert.equal(
        lines.filter((line) => line.includes(`/manifests/${place}: `)).length,
        1,
        `${place} in\n${server.log}`,
      );
    assert.equal(lines.length, 8, server.log);
    for (const [name, address] of [
      ["first", "10.0.0.1"],
      ["second", "10.0.0.2"],
      ["third", "NXDOMAIN"],
      ["fourth", "10.0.0.4"],
      ["fifth", "10.0.0.5"],
    ] as const)
      assert.equal(await addressOf(server, name), address);
  });

  test("that are edited, added, moved and removed count while the server runs", async () => {
    await using server = await start({ "manifests/one.yaml": service("one", "10.0.0.1") });
    const folder = join(server.folder, "manifests");
    writeFileSync(join(folder, "one.yaml"), service("one", "10.0.0.11"));
    writeFileSync(join(folder, "two.yaml"), service("two", "10.0.0.2"));
    mkdirSync(join(folder, "deep"));
    writeFileSync(join(folder, "deep", "three.yaml"), service("three", "10.0.0.3"));
    await untilAddress(server, "one", "10.0.0.11");
    await untilAddress(server, "two", "10.0.0.2");
    await untilAddress(server, "three", "10.0.0.3");
    // As editors and ConfigMaps do it: written beside, and moved into place.
    writeFileSync(join(server.folder, "new.yaml"), service("one", "10.0.0.12"));
    renameSync(join(server.folder, "new.yaml"), join(folder, "one.yaml"));
    rmSync(join(folder, "deep"), { recursive: true });
    await untilAddress(server, "one", "10.0.0.12");
    await untilAddress(server, "three", "NXDOMAIN");
    rmSync(join(folder, "one.yaml"));
    await untilAddress(server, "one", "NXDOMAIN");
    assert.equal(await addressOf(server, "two"), "10.0.0.2");
    assert.doesNotMatch(server.log, /\[ERROR\]/);
  });

  test("that break while the server runs keep their last good version", async () => {
    await using server = await start({
      "manifests/one.yaml": service("one", "10.0.0.1"),
      "manifests/two.yaml": service("two", "10.0.0.2"),
    });
    const one = join(server.folder, "manifests", "one.yaml");
    const memory = server.residentMemory;
    for (const [breakIt, message] of [
      [() => writeFileSync(one, "broken: ["), /one\.yaml:\d+: not valid YAML/],
      [() => writeFileSync(one, ALIAS_BOMB), /one\.yaml:\d+: not valid YAML: Excessive alias count/],
      [() => truncateSync(one, 200 * 1024 * 1024), /one\.yaml:\d+: larger than/],
    ] as const) {
      const logged = server.log.length;
      breakIt();
      await server.waitForLog(message, logged);
      assert.equal(await addressOf(server, "one"), "10.0.0.1");
      assert.equal(await addressOf(server, "two"), "10.0.0.2");
    }
    assert.ok(server.residentMemory - memory < 64 * 1024 * 1024);
    writeFileSync(one, service("one", "10.0.0.21"));
    await untilAddress(server, "one", "10.0.0.21");
  });
});
