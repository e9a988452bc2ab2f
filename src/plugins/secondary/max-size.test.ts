/** The bound for a zone without `max_size`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Machine } from "../../plugin/contract/site.ts";
import { records, until } from "../../plugin/testing.ts";
import { zoneLimit } from "./config.ts";
import { loaded, ScriptedPrimary, serve, soa } from "./fixtures/primary.ts";

const MIB = 1024 * 1024;

for (const [maxSize, memoryLimit, limit] of [
  [undefined, undefined, 1024],
  [undefined, 16 * 1024, 1024],
  [undefined, 170, 42.5],
  [undefined, 8, 4],
  [300, 170, 300],
  [1, undefined, 1],
] as const)
  test(`a zone has ${limit} MiB with max_size ${maxSize} in ${memoryLimit ?? "any"} MiB`, () => {
    assert.equal(zoneLimit(maxSize, memoryLimit === undefined ? undefined : memoryLimit * MIB), limit * MIB);
  });

const machine: Machine = {
  hostname: "small",
  interfaceAddresses: () => undefined,
  addresses: () => [],
  environment: {},
  parallelism: 1,
  descriptors: 1024,
  memoryLimit: 16 * MIB,
};

test("an endless transfer is aborted at a quarter of the memory limit, and the old zone stays", async () => {
  await using primary = await ScriptedPrimary.start();
  primary.serve(soa(1), "www.example.org. 60 IN A 192.0.2.1");
  const running = serve(primary, "", { site: { machine } });
  await running.start();
  await loaded(running);
  // Far more than 4 MiB, without a final SOA record.
  primary.messages = () => [
    [soa(2)],
    ...Array.from({ length: 70 }, (_, part) =>
      records(
        ...Array.from(
          { length: 1_000 },
          (_, index) => `name-with-a-long-label-${part}-${index}.example.org. 60 IN A 192.0.2.1`,
        ),
      ),
    ),
  ];
  await running.clock.settle(102_500);
  await until(() =>
    running.log.lines.some((line) => line.includes("the zone is larger than 4194304 octets")),
  );
  const outcome = await running.outcome({ name: "www.example.org." });
  assert.equal(outcome.kind, "reply");
  await running.stop();
});
