import assert from "node:assert/strict";
import { test } from "node:test";
import { PluginTest } from "../../plugin/testing.ts";
import cache from "./index.ts";

for (const text of [
  "cache",
  "cache 5 example.org {\n success 100 30 10\n denial 100 30 10\n}",
  "cache {\n prefetch 1\n serve_stale 1h verify 100ms\n keepttl\n servfail 0\n}",
  "cache {\n memory 4MiB\n}",
])
  test(`a rehearsal leaves nothing behind: ${text.replaceAll("\n", "")}`, async () => {
    const running = PluginTest.of(cache, text);
    const counted = async (): Promise<readonly string[]> =>
      (await running.metrics.expose()).body.split("\n").filter((line) => line.startsWith("coredns_cache"));
    const before = await counted();
    const said = running.log.lines.length;
    await running.start();
    assert.deepEqual(await counted(), before);
    assert.equal(running.log.lines.length, said);
    let asked = 0;
    await running.ask({
      name: "example.org.",
      next: (query) => {
        asked++;
        return query.reply({});
      },
    });
    assert.equal(asked, 1);
    await running.stop();
  });
