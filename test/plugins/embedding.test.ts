/** `createServer` of the package `portolan`: servers in this very process. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { parseRecord, Rcode } from "../../src/dns/index.ts";
import {
  ConfigurationError,
  createServer,
  NoAnswer,
  PluginListError,
  PluginPlaceError,
} from "../../src/index.ts";
import {
  bareDirective,
  DROPPED,
  definePlugin,
  type Handler,
  type PluginDefinition,
} from "../../src/plugin/index.ts";
import { FakeClock, MemoryLog } from "../../src/plugin/testing.ts";
import { projectRoot, runPortolan } from "../support/portolan.ts";

/** Answers everything with one text. */
function saying(text: string, name = "say"): PluginDefinition<object> {
  return handling(
    (query) => query.reply({ answer: [parseRecord(`${query.name} 5 IN TXT "${text}"`)] }),
    name,
  );
}

function handling(handle: Handler, name = "say"): PluginDefinition<object> {
  return definePlugin({
    name,
    summary: "Is for a test.",
    config: bareDirective(),
    create: () => ({ handle }),
  });
}

/** The same as a file. */
function sayingFile(text: string): string {
  return `import { parseRecord } from "portolan/dns";
import { bareDirective, definePlugin } from "portolan/plugin";
export default definePlugin({
  name: "say", summary: "Is for a test.", config: bareDirective(),
  create: () => ({ handle: (query) => query.reply({ answer: [parseRecord(\`\${query.name} 5 IN TXT "${text}"\`)] }) }),
});
`;
}

const block = (...lines: readonly string[]): string => `.:0 {\n bind 127.0.0.1\n ${lines.join("\n ")}\n}\n`;
const question = { name: "a.example", type: "TXT" } as const;

describe("createServer", () => {
  test("two servers with plugins of the same name do not meet", async () => {
    await using one = await createServer({ corefile: block("say"), plugins: [saying("one")] });
    await using other = await createServer({ corefile: block("say"), plugins: [saying("other")] });
    await Promise.all([one.start(), other.start()]);
    for (const over of ["process", "udp", "tcp"] as const) {
      const answers = await Promise.all([one, other].map((server) => server.ask({ ...question, over })));
      assert.deepEqual(
        answers.map(({ answer }) => answer),
        [['a.example. 5 IN TXT "one"'], ['a.example. 5 IN TXT "other"']],
      );
    }
    assert.notEqual(one.addresses[0]?.port, other.addresses[0]?.port);
    assert.match(await one.metrics(), /^portolan_plugin_panics_total\{plugin="say"\} 0$/m);
    assert.equal(await one.stop(), 0);
    assert.equal((await other.ask({ ...question, over: "udp" })).rcode, Rcode.NOERROR);
  });

  test("an object may stand anywhere in the chain, or in the place of another", async () => {
    const first = handling((query, next) => next(query), "first");
    await using server = await createServer({
      corefile: block("whoami", "say", "first"),
      plugins: [
        { plugin: saying("I"), before: "hosts" },
        { plugin: first, before: "say" },
        saying("you", "whoami"),
      ],
    });
    await server.start();
    assert.deepEqual((await server.ask(question)).answer, ['a.example. 5 IN TXT "I"']);
  });

  test("modules: by flag text, by plugin.cfg, by the Corefile, loaded anew at a reload", async (t) => {
    const folder = makeTree(t, {
      "say.ts": sayingFile("first"),
      "plugin.cfg": "bind:bind\nsay:./say.ts\n",
    });
    const file = join(folder, "Corefile");
    const corefile = block("say");
    const log = new MemoryLog();
    for (const options of [
      { corefile, plugins: ["say:./say.ts@before=whoami"] },
      { corefile, pluginConfig: join(folder, "plugin.cfg") },
      { corefile: `{\n plugin say ./say.ts\n}\n${corefile}` },
    ]) {
      writeFileSync(join(folder, "say.ts"), sayingFile("first"));
      await using server = await createServer({ ...options, file, log });
      await server.start();
      assert.deepEqual((await server.ask(question)).answer, ['a.example. 5 IN TXT "first"']);
      writeFileSync(join(folder, "say.ts"), sayingFile("second one"));
      await server.reload();
      assert.deepEqual((await server.ask(question)).answer, ['a.example. 5 IN TXT "second one"']);
    }
  });

  test("a Corefile that cannot run, or serves nothing, is an error at once", async () => {
    for (const [corefile, message] of [
      ["", /^Corefile: there is no server block, so there is nothing to serve$/],
      ["# nothing\n(snippet) {\n whoami\n}\n", /there is no server block/],
      [". {\n whoima\n}\n", /^Corefile:2:2: error: Unknown directive 'whoima'/],
    ] as const)
      await assert.rejects(createServer({ corefile }), { name: "ConfigurationError", message });
  });

  test("a reload takes another Corefile, and keeps the old one where that cannot run", async () => {
    await using server = await createServer({ corefile: block("say"), plugins: [saying("I")] });
    await server.start();
    await assert.rejects(server.reload(block("sya")), ConfigurationError);
    await server.reload();
    assert.equal((await server.ask(question)).answer.length, 1);
    await server.reload(block("whoami"));
    assert.equal((await server.ask(question)).additional.length, 2);
  });

  test("the plugin that takes the place of one in the Corefile is the caller's", async () => {
    const corefile = `{\n plugin say ./nowhere.ts\n}\n${block("say")}`;
    await using server = await createServer({ corefile, plugins: [saying("I")] });
    await server.start();
    assert.deepEqual((await server.ask(question)).answer, ['a.example. 5 IN TXT "I"']);
  });

  test("faulty plugins cost their own queries, and are named", async () => {
    const lines: string[] = [];
    const clock = new FakeClock();
    const hanging = Promise.withResolvers<void>();
    const faulty = handling((query, next) => {
      switch (query.name.labelText(0)) {
        case "throws":
          throw new Error("thrown");
        case "hangs":
          hanging.resolve();
          return new Promise(() => undefined);
        case "drops":
          return DROPPED;
        default:
          return next(query);
      }
    });
    await using server = await createServer({
      corefile: block("say", "whoami"),
      plugins: [{ plugin: faulty, before: "whoami" }],
      pluginTimeout: 100,
      clock,
      log: (line) => lines.push(line),
    });
    await server.start();
    assert.equal((await server.ask({ name: "throws.example", over: "udp" })).rcode, Rcode.SERVFAIL);
    const late = server.ask({ name: "hangs.example", over: "tcp" });
    await hanging.promise;
    clock.advance(100);
    assert.equal((await late).rcode, Rcode.SERVFAIL);
    await assert.rejects(server.ask({ name: "drops.example" }), NoAnswer);
    assert.equal((await server.ask({ name: "passes.example" })).rcode, Rcode.NOERROR);
    const metrics = await server.metrics();
    assert.match(metrics, /^portolan_plugin_panics_total\{plugin="say"\} 1$/m);
    assert.match(metrics, /^portolan_plugin_overruns_total\{plugin="say"\} 1$/m);
    for (const part of ["plugin/say: thrown", "plugin/say: no answer within 100ms for hangs.example."])
      assert.ok(
        lines.some((line) => line.includes(part)),
        lines.join("\n"),
      );
  });

  test("what cannot be made", async () => {
    const options = { corefile: block("say") };
    await assert.rejects(createServer({ ...options, plugins: ["say"] }), PluginListError);
    await assert.rejects(createServer({ ...options, plugins: ["say:./say.ts@after=lgo"] }), PluginPlaceError);
    await assert.rejects(
      createServer({ ...options, plugins: [{ plugin: saying("I"), before: "log", after: "any" }] }),
      PluginListError,
    );
    await assert.rejects(createServer({ ...options, pluginConfig: "/nowhere/plugin.cfg" }), {
      message: "cannot read the list of plugins /nowhere/plugin.cfg: no such file",
    });
    await assert.rejects(
      createServer({ corefile: block("multisocket 2", "say"), plugins: [saying("I")] }),
      /Corefile:4:2: error: plugin 'say' was passed as an object/,
    );
    await using idle = await createServer({ corefile: block("whoami") });
    await assert.rejects(idle.ask(question), {
      name: "RangeError",
      message: "the server listens at no address",
    });
  });

  test("the test on docs/plugins.md passes", async (t) => {
    const blocks = fencedBlocks(readFileSync(join(projectRoot, "docs", "plugins.md"), "utf8"));
    const files = ["greet.ts", "greet.test.ts"].map((file) => {
      const block = blocks.find(({ introduction }) => introduction === `\`${file}\`:`);
      return [file, block?.text ?? assert.fail(file)] as const;
    });
    const cwd = makeTree(t, Object.fromEntries(files));
    const { code, output } = await runPortolan(["plugin", "test"], { cwd });
    assert.equal(code, 0, output);
    assert.match(output, /pass 2/);
  });
});
