import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ServerControl } from "../../plugin/contract/site.ts";
import type { Random } from "../../plugin/index.ts";
import { ConfigRefused, PluginTest, type PluginTestOptions } from "../../plugin/testing.ts";
import reload from "./index.ts";

/** A server whose Corefile the test changes: its text is its hash, and `bad ...` fails to load. */
class Control implements ServerControl {
  readonly sha512: string = "one";
  corefile = "one";
  /** The running configuration; a text with "without" has no `reload`. */
  current: string | undefined = "one";
  readonly ends = new Set<() => void>();
  reads = 0;
  readonly reloads: string[] = [];

  async readConfiguration(): Promise<{ sha512: string }> {
    this.reads++;
    if (this.corefile.startsWith("unreadable"))
      throw new Error(`Corefile:1:1: error: ${this.corefile}\n  1 | ${this.corefile}`);
    return { sha512: this.corefile };
  }

  async reload(): Promise<void> {
    this.reloads.push(this.corefile);
    if (this.corefile.startsWith("bad"))
      throw new Error(`cannot serve ${this.corefile}\n  1 | ${this.corefile}`);
    this.current = this.corefile;
  }

  inForce() {
    const { current } = this;
    if (current === undefined) return undefined;
    return {
      sha512: current,
      hasPlugin: (name: string) => name === "reload" && !current.includes("without"),
    };
  }

  untilServerStops(end: () => void): () => void {
    this.ends.add(end);
    return () => this.ends.delete(end);
  }

  fatal(): void {
    assert.fail("not to be called");
  }

  explain(): never {
    assert.fail("not to be called");
  }

  clusters(): [] {
    return [];
  }
}

function started(
  text: string,
  control: Control,
  options: PluginTestOptions = {},
): Promise<PluginTest<unknown>> {
  const plugin = PluginTest.of(reload, text, { ...options, site: { control, ...options.site } });
  return plugin.start().then(() => plugin);
}

function values(plugin: PluginTest<unknown>): { failed: number; version: string[] } {
  const version = { name: "coredns_reload_version_info", help: "same", labels: ["hash", "value"] };
  return {
    failed: plugin.metrics.counter({ name: "coredns_reload_failed_total", help: "same" }).slot().value,
    version: [...plugin.metrics.gauge(version).series()].map(
      ({ labelValues, slot }) => `${labelValues.join(" ")} ${slot.value}`,
    ),
  };
}

test("new content with the same fault is logged, and the same content is not", async () => {
  let contents = 1;
  const control = Object.assign(new Control(), { refusedContents: () => contents });
  const plugin = await started("reload 10s 0s", control);
  control.corefile = "unreadable";
  await plugin.clock.settle(30_000);
  assert.equal(values(plugin).failed, 1);
  contents++;
  await plugin.clock.settle(30_000);
  assert.equal(values(plugin).failed, 2);
  assert.equal(plugin.log.lines.filter((line) => line.includes("reload failed: ")).length, 2);
  await plugin.stop();
});

test("names the running configuration", async () => {
  const plugin = await started("reload", new Control());
  assert.deepEqual(plugin.log.lines, ["[INFO] plugin/reload: Running configuration SHA512 = one"]);
  assert.deepEqual(values(plugin), { failed: 0, version: ["sha512 one 1"] });
  await plugin.stop();
  assert.equal(plugin.clock.pendingTimers, 0);
});

test("reloads a changed Corefile, and leaves the watch to the new configuration", async () => {
  const control = new Control();
  const plugin = await started("reload 10s 0s", control);
  await plugin.clock.settle(10_000);
  assert.deepEqual([control.reads, control.reloads], [1, []]);
  control.corefile = "two";
  await plugin.clock.settle(9_999);
  assert.deepEqual(control.reloads, []);
  await plugin.clock.settle(1);
  assert.deepEqual(control.reloads, ["two"]);
  assert.equal(plugin.clock.pendingTimers, 0);
  assert.equal(values(plugin).failed, 0);
});

test("tries a faulty file once, until it changes again", async () => {
  const control = new Control();
  const plugin = await started("reload 10s 0s", control);
  control.corefile = "bad port";
  await plugin.clock.settle(30_000);
  assert.deepEqual(control.reloads, ["bad port"]);
  assert.equal(values(plugin).failed, 1);
  assert.equal(
    plugin.log.lines.at(-1),
    "[ERROR] plugin/reload: Corefile changed but reload failed: cannot serve bad port",
  );
  // The running configuration is not loaded again, and the end of the fault is logged once.
  control.corefile = "one";
  await plugin.clock.settle(30_000);
  assert.deepEqual(control.reloads, ["bad port"]);
  assert.deepEqual(plugin.log.lines.filter((line) => line.includes("[INFO]")).slice(1), [
    "[INFO] plugin/reload: The Corefile equals the running configuration again",
  ]);
  control.corefile = "bad port";
  await plugin.clock.settle(10_000);
  assert.deepEqual(control.reloads, ["bad port", "bad port"]);
  control.corefile = "three";
  await plugin.clock.settle(10_000);
  assert.deepEqual(control.reloads.at(-1), "three");
});

test("logs once, line by line, why a Corefile cannot be read or parsed", async () => {
  const control = new Control();
  const plugin = await started("reload 10s 0s", control);
  control.corefile = "unreadable";
  await plugin.clock.settle(30_000);
  assert.deepEqual(plugin.log.lines.slice(1), [
    "[ERROR] plugin/reload: Corefile changed but reload failed: Corefile:1:1: error: unreadable",
    "[ERROR] plugin/reload:   1 | unreadable",
  ]);
  assert.deepEqual([values(plugin).failed, control.reloads], [1, []]);
  control.corefile = "unreadable still";
  await plugin.clock.settle(10_000);
  assert.equal(values(plugin).failed, 2);
  control.corefile = "one";
  await plugin.clock.settle(10_000);
  control.corefile = "unreadable still";
  await plugin.clock.settle(10_000);
  assert.equal(values(plugin).failed, 3);
  await plugin.stop();
  assert.equal(plugin.clock.pendingTimers, 0);
});

describe("a new Corefile without reload", () => {
  test("is still watched, with the same interval", async () => {
    const control = new Control();
    const plugin = await started("reload 10s 0s", control);
    control.corefile = "two without";
    await plugin.clock.settle(10_000);
    await plugin.stop();
    assert.equal(plugin.log.lines.at(-1), "[INFO] plugin/reload: Running configuration SHA512 = two without");
    assert.deepEqual(values(plugin).version, ["sha512 two without 1"]);
    control.corefile = "three without";
    await plugin.clock.settle(10_000);
    // The first content is not the running configuration any more.
    control.corefile = "one";
    await plugin.clock.settle(10_000);
    assert.deepEqual(control.reloads, ["two without", "three without", "one"]);
    // The new configuration has its own watcher.
    assert.deepEqual([plugin.clock.pendingTimers, control.ends.size], [0, 0]);
  });

  test("loaded by signal is still watched until another one has reload", async () => {
    const control = new Control();
    const plugin = await started("reload 10s 0s", control);
    control.corefile = "two without";
    await control.reload();
    await plugin.stop();
    await plugin.clock.settle(10_000);
    assert.deepEqual([control.reads, control.reloads], [1, ["two without"]]);
    control.corefile = "three";
    await control.reload();
    await plugin.clock.settle(10_000);
    assert.deepEqual([control.reads, plugin.clock.pendingTimers, control.ends.size], [1, 0, 0]);
  });

  test("is not watched when the server has stopped", async () => {
    const control = new Control();
    const plugin = await started("reload 10s 0s", control);
    control.current = "two without";
    await plugin.stop();
    assert.equal(plugin.clock.pendingTimers, 1);
    for (const end of control.ends) end();
    assert.equal(plugin.clock.pendingTimers, 0);
  });
});

test("after a Corefile that does not parse the log says which configuration stays in force, and the recovery once", async () => {
  const control = Object.assign(new Control(), {
    view: {
      startedAt: 0,
      threads: 1,
      blocks: () => [],
      configuration: () => ({
        file: "Corefile",
        text: "",
        sha512: "one",
        inForceSince: Date.UTC(2026, 10, 28, 5, 4, 3),
        warnings: [],
        refused: undefined,
      }),
    },
  });
  const plugin = await started("reload 10s 0s", control);
  control.corefile = "unreadable";
  await plugin.clock.settle(30_000);
  assert.deepEqual(plugin.log.lines.slice(3), [
    "[WARNING] plugin/reload: the configuration in force since 2026-11-28T05:04:03Z stays in force",
  ]);
  control.corefile = "one";
  await plugin.clock.settle(30_000);
  assert.deepEqual(plugin.log.lines.slice(4), [
    "[INFO] plugin/reload: The Corefile equals the running configuration again",
  ]);
  await plugin.stop();
});

test("ends during a check", async () => {
  const control = new Control();
  const read = Promise.withResolvers<{ sha512: string }>();
  // The server stops.
  control.current = undefined;
  control.readConfiguration = () => read.promise;
  const plugin = await started("reload 10s 0s", control);
  await plugin.clock.settle(10_000);
  await plugin.stop();
  read.resolve({ sha512: "two" });
  await plugin.clock.settle(60_000);
  assert.deepEqual(control.reloads, []);
  assert.equal(plugin.clock.pendingTimers, 0);
});

describe("the period", () => {
  for (const [text, fraction, period] of [
    ["reload", 0.5, 30_000],
    ["reload", 0, 22_500],
    ["reload", 0.999_999, 37_500],
    ["reload 10s", 0, 7_500],
    ["reload 10s 2s", 0, 9_000],
    ["reload 2s 0s", 0, 2_000],
  ] as const) {
    test(`${text} at ${fraction}`, async () => {
      const control = new Control();
      const random: Random = { fraction: () => fraction, unpredictable: () => 1 };
      const plugin = await started(text, control, { site: { random } });
      await plugin.clock.settle(period - 1);
      assert.equal(control.reads, 0);
      await plugin.clock.settle(1);
      assert.equal(control.reads, 1);
      await plugin.stop();
    });
  }

  test("is that of the last directive, with one watcher for all blocks", async () => {
    const control = new Control();
    const shared = new Map<string, unknown>();
    const make = (text: string, clock?: PluginTest<unknown>["clock"]) =>
      PluginTest.of(reload, text, { shared, site: { control }, ...(clock && { clock }) });
    const first = make("reload 10s 0s\nreload 20s 0s");
    const second = make("reload 40s 0s", first.clock);
    await first.start();
    await second.start();
    assert.equal(first.clock.pendingTimers, 1);
    assert.equal(first.log.lines.length + second.log.lines.length, 1);
    await first.clock.settle(39_999);
    assert.equal(control.reads, 0);
    await first.clock.settle(1);
    assert.equal(control.reads, 1);
    await first.stop();
    await second.stop();
    assert.equal(first.clock.pendingTimers, 0);
  });
});

describe("refuses", () => {
  for (const [text, code, message] of [
    [
      "reload 1s",
      "PLUGIN_BAD_VALUE",
      /2:8: error: '1s' is not a duration such as 30s or 1m30s of 2s or more/,
    ],
    ["reload 10", "PLUGIN_BAD_VALUE", /duration '10' has no unit[\s\S]*'10s'/],
    ["reload 10s 500ms", "PLUGIN_BAD_VALUE", /2:12: error: '500ms' is not a duration.*1s or more/],
    ["reload 10s -1s", "PLUGIN_BAD_VALUE", /'-1s' is not a duration/],
    ["reload 10s x", "PLUGIN_BAD_VALUE", /'x' is not a duration/],
    ["reload 10s 1s 1s", "PLUGIN_ARGUMENT_UNEXPECTED", /unexpected line ending after '1s'/],
    ["reload {\n interval 3s\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'interval'/],
  ] as const) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => PluginTest.of(reload, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});
