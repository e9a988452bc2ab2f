import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { makeTree } from "../scripts/lib/test-tree.ts";
import { writeClusterFiles, writeQueryFiles } from "./material.ts";
import { CLUSTER_SERVICES, SEARCH_PATH } from "./names.ts";
import { type Phase, WORKLOADS, type Workload } from "./workloads.ts";

function workload(name: string): Workload {
  const found = WORKLOADS.find((one) => one.name === name);
  assert.ok(found !== undefined);
  return found;
}

function lines(name: string, phase: Phase, count = 10_000): string[] {
  return [...workload(name).queries(phase, count)];
}

describe("workloads", () => {
  test("each asks only for names that its fill has brought into the cache, where all are to be hits", () => {
    for (const name of [
      "cached-1k",
      "search-path",
      "tcp-pipelined",
      "tcp-one-query",
      "dot-pipelined",
      "doh",
      "dot-handshakes",
      "doq",
    ]) {
      const filled = new Set(lines(name, "fill"));
      assert.deepEqual(
        lines(name, "capacity").find((line) => !filled.has(line)),
        undefined,
        name,
      );
    }
    assert.equal(lines("cached-100k", "fill").length, 100_000);
  });

  test("popular names come often, and all phases and servers get the same queries", () => {
    const queries = lines("cached-1k", "capacity");
    const first = queries.filter((line) => line === "host-0.bench.example A").length;
    // The sum of 1/n up to 1,000 is 7.49.
    assert.ok(Math.abs(first / queries.length - 1 / 7.49) < 0.01);
    assert.deepEqual(lines("cached-1k", "open-loop"), queries);
  });

  test("a search path is walked in the order of the resolver, A and AAAA", () => {
    assert.deepEqual(lines("search-path", "fill").slice(0, 8), [
      ...SEARCH_PATH.flatMap((suffix) => [
        `host-0.bench.example.${suffix} A`,
        `host-0.bench.example.${suffix} AAAA`,
      ]),
      "host-0.bench.example A",
      "host-0.bench.example AAAA",
    ]);
  });

  test("one of five queries of cache-80 is for a new name", () => {
    const filled = new Set(lines("cache-80", "fill"));
    const missesOf = (phase: Phase) => lines("cache-80", phase).filter((line) => !filled.has(line));
    const misses = missesOf("capacity");
    assert.ok(Math.abs(misses.length / 10_000 - 0.2) < 0.01, `${misses.length}`);
    const all = [...misses, ...missesOf("warm-up"), ...missesOf("open-loop")];
    assert.equal(new Set(all).size, all.length);
  });

  test("names to forward come in turn", () => {
    assert.deepEqual(lines("forward", "warm-up").slice(0, 2), [
      "warm-up-0.bench.example A",
      "warm-up-1.bench.example A",
    ]);
  });
});

describe("files", () => {
  test("the cluster's names are the same in manifests, hosts and zone", (t) => {
    const files = writeClusterFiles(makeTree(t, {}));
    const hosts = readFileSync(files.hosts, "utf8");
    const zone = readFileSync(files.zoneFile, "utf8");
    const manifests = readdirSync(files.manifests).map((file) =>
      readFileSync(join(files.manifests, file), "utf8"),
    );
    assert.equal(hosts.trimEnd().split("\n").length, CLUSTER_SERVICES.length);
    assert.equal(new Set(CLUSTER_SERVICES.map(({ address }) => address)).size, CLUSTER_SERVICES.length);
    assert.match(hosts, /^10\.96\.4\.231 service-999\.namespace-9\.svc\.cluster\.local$/m);
    assert.match(zone, /^service-999\.namespace-9\.svc\.cluster\.local\. IN A 10\.96\.4\.231$/m);
    assert.equal(manifests.join("---\n").split("---\n").length, CLUSTER_SERVICES.length);
    assert.match(
      manifests.join(),
      /name: service-999\n {2}namespace: namespace-9\nspec:\n {2}clusterIP: 10\.96\.4\.231\n/,
    );
  });

  test("queries are written with as many lines as they are said to have", (t) => {
    const folder = makeTree(t, {});
    const files = writeQueryFiles(folder, workload("cache-80"), { warmUp: 1, measured: 1 });
    for (const { path, lines } of Object.values(files))
      assert.equal(readFileSync(path, "utf8").split("\n").length - 1, lines, path);
    assert.equal(files.fill.lines, 1_000);
    assert.equal(files.capacity.lines, 200_000);
  });
});
