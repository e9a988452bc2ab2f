import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import multisocket from "./index.ts";

describe("the number of sockets", () => {
  for (const [text, sockets] of [
    // The number of processors of the test's machine.
    ["multisocket", 4],
    ["multisocket 1", 1],
    ["multisocket 2", 2],
    ["multisocket 16", 16],
  ] as const) {
    test(text, () => {
      const plugin = PluginTest.of(multisocket, text);
      assert.equal(plugin.settings.sockets, sockets);
      assert.deepEqual(plugin.instances, []);
    });
  }

  test("is at most four times that of the processors, with a warning", () => {
    const plugin = PluginTest.of(multisocket, "multisocket 1024");
    assert.equal(plugin.settings.sockets, 16);
    assert.match(plugin.warnings.join(), /warning: multisocket 1024 starts 16 threads .* with 4 processors/);
    assert.deepEqual(PluginTest.of(multisocket, "multisocket 16").warnings, []);
  });

  test("is one without the directive", () => {
    assert.equal(PluginTest.of(multisocket, "").settings.sockets, 1);
  });
});

describe("bad input", () => {
  for (const [text, code, message] of [
    ["multisocket 0", "PLUGIN_BAD_VALUE", "num sockets can not be zero or negative: 0"],
    ["multisocket -3", "PLUGIN_BAD_VALUE", "num sockets can not be zero or negative: -3"],
    ["multisocket 1025", "PLUGIN_BAD_VALUE", "num sockets exceeds maximum (1024): 1025"],
    ["multisocket two", "PLUGIN_BAD_VALUE", "invalid num sockets: two"],
    ["multisocket 1.5", "PLUGIN_BAD_VALUE", "invalid num sockets: 1.5"],
    [
      "multisocket 1 2",
      "PLUGIN_ARGUMENT_UNEXPECTED",
      "Wrong argument count or unexpected line ending after '2'",
    ],
    ["multisocket {\n  sockets 2\n}", "PLUGIN_UNKNOWN_PROPERTY", "unknown property 'sockets'"],
    ["multisocket 2\nmultisocket 3", "PLUGIN_REPEATED", "this plugin can only be used once per Server Block"],
  ] as const) {
    test(text.replaceAll("\n", " "), () => {
      assert.throws(
        () => PluginTest.of(multisocket, text),
        (error) => {
          assert.ok(error instanceof ConfigRefused);
          assert.deepEqual(error.codes, [code]);
          assert.ok(error.message.includes(message), error.message);
          return true;
        },
      );
    });
  }
});
