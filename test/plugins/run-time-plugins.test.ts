/** Plugins that do not come with the program: one file beside a Corefile, with no build and no package around it. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fencedBlocks } from "../../scripts/lib/markdown.ts";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { formatRecord } from "../../src/dns/resource-record.ts";
import { ask, type Server } from "../support/dns-client.ts";
import type { PortOf } from "../support/free-ports.ts";
import { Portolan, projectRoot, runPortolan } from "../support/portolan.ts";

/** Answers every name with one text. */
function greeting(text: string): string {
  return `import { parseRecord } from "portolan/dns";
import { definePlugin, directive, domainName, required } from "portolan/plugin";

export default definePlugin({
  name: "greet",
  summary: "Says hello.",
  requires: ">=0.1.0",
  config: directive({ args: { name: required(domainName()) } }),
  create: ({ name }) => ({
    handle(query, next) {
      if (!query.name.equals(name)) return next(query);
      const text: string = "${text}";
      return query.reply({ answer: [parseRecord(\`\${name} 60 IN TXT "\${text}"\`)] });
    },
  }),
});
`;
}

const corefile = (port: PortOf) =>
  `.:${port("dns")} {\n bind 127.0.0.1\n prometheus 127.0.0.1:${port("metrics")}\n errors\n greet hello.example\n whoami\n}\n`;

async function greetingOf(server: Server): Promise<string> {
  const { answer } = await ask(server, "hello.example", "TXT");
  return answer.map(formatRecord).join("\n");
}

test("a file that plugin.cfg beside the Corefile lists, loaded anew at a reload", async () => {
  await using server = await Portolan.start(corefile, {
    files: {
      "greet.ts": greeting("good morning"),
      "plugin.cfg": "prometheus:prometheus\nerrors:errors\nbind:bind\ngreet:./greet.ts\nwhoami:whoami\n",
    },
  });
  assert.match(await greetingOf(server), /"good morning"/);
  writeFileSync(join(server.folder, "greet.ts"), greeting("good evening"));
  assert.match(await server.reload(), /Reloading complete/);
  assert.match(await greetingOf(server), /"good evening"/);
  writeFileSync(join(server.folder, "greet.ts"), "export default {");
  assert.match(await server.reload(), /cannot load plugin "greet" from "\.\/greet\.ts"/);
  assert.match(await greetingOf(server), /"good evening"/);
});

test("the plugin of docs/plugins.md answers, started as the page says", async () => {
  const blocks = fencedBlocks(readFileSync(join(projectRoot, "docs", "plugins.md"), "utf8"));
  const textAfter = (introduction: string) =>
    blocks.find((block) => block.introduction === introduction)?.text ?? assert.fail(introduction);
  const source = textAfter("`greet.ts`:");
  const command = blocks.find(({ language }) => language === "sh")?.text.trim() ?? assert.fail();
  assert.match(command, /^portolan -conf Corefile /);
  await using server = await Portolan.start(
    (port) => textAfter("`Corefile`:").replace("10053", String(port("dns"))),
    { files: { "greet.ts": source }, args: command.split(" ").slice(3) },
  );
  assert.equal(await greetingOf(server), 'hello.example.\t5\tIN\tTXT\t"hello"');
});

test("the plugin with zones of docs/plugins.md answers for its zones, and passes on what fallthrough permits", async () => {
  const blocks = fencedBlocks(readFileSync(join(projectRoot, "docs", "plugins.md"), "utf8"));
  const source = blocks.find(({ introduction }) => introduction === "`zonal.ts`:")?.text ?? assert.fail();
  await using server = await Portolan.start(
    (port) =>
      `{\n plugin zonal ./zonal.ts before template\n}\n.:${port("dns")} {\n bind 127.0.0.1\n zonal a.example b.example {\n fallthrough b.example\n }\n template IN TXT . {\n answer "{{ .Name }} 5 IN TXT next"\n }\n}\n`,
    { files: { "zonal.ts": source } },
  );
  for (const [name, rcode, text] of [
    ["a.example", 0, "apex"],
    ["x.a.example", 3, undefined],
    ["x.b.example", 0, "next"],
    ["elsewhere.example", 0, "next"],
  ] as const) {
    const reply = await ask(server, name, "TXT");
    assert.equal(reply.rcode, rcode, name);
    assert.equal(reply.answer.map(formatRecord)[0]?.includes(text ?? "") ?? false, text !== undefined, name);
  }
});

test("-plugin adds one: the file's place in the chain, its faults and its time are looked after", async () => {
  const faulty = `import { bareDirective, definePlugin } from "portolan/plugin";
export default definePlugin({
  name: "faulty",
  summary: "Fails in several ways.",
  config: bareDirective(),
  create: () => ({
    handle(query, next) {
      switch (query.name.labelText(0)) {
        case "throws": throw new Error("thrown");
        case "rejects": return Promise.reject(new Error("rejected"));
        case "hangs": return new Promise(() => {});
        case "rubbish": return "rubbish";
        default: return next(query);
      }
    },
  }),
});
`;
  await using server = await Portolan.start(
    (port) =>
      `.:${port("dns")} {\n bind 127.0.0.1\n prometheus 127.0.0.1:${port("metrics")}\n errors\n erratic\n faulty\n}\n`,
    {
      files: { "faulty.ts": faulty },
      args: ["-plugin", "faulty:./faulty.ts@after=errors", "-plugin-timeout", "100ms"],
    },
  );
  for (const name of ["throws", "rejects", "hangs", "rubbish"])
    assert.equal((await ask(server, `${name}.example`)).rcode, 2, name);
  await server.waitForLog(/plugin\/faulty: handler returned no outcome/);
  assert.match(server.log, /\[ERROR\] plugin\/faulty: no answer within 100ms for hangs\.example\.: SERVFAIL/);
  assert.match(server.log, /plugin\/faulty: thrown/);
  assert.match(server.log, /plugin\/faulty: rejected/);
  const { body } = await server.page("metrics", "/metrics");
  assert.match(body, /^portolan_plugin_overruns_total\{plugin="faulty"\} 1$/m);
  assert.match(body, /^coredns_panics_total 3$/m);
  assert.match(body, /^portolan_plugin_panics_total\{plugin="faulty"\} 3$/m);
});

test("what a plugin forgot to wait for costs no answer, on every thread", async () => {
  const careless = `import { bareDirective, definePlugin } from "portolan/plugin";
export default definePlugin({
  name: "careless",
  summary: "Leaves things behind.",
  config: bareDirective(),
  create: () => ({
    handle(query, next) {
      switch (query.name.labelText(0)) {
        case "timer": setTimeout(() => { throw new Error("thrown later"); }, 1); break;
        case "promise": void Promise.reject(new Error("rejected later")); break;
        case "nothing": void Promise.reject(); break;
      }
      return next(query);
    },
  }),
});
`;
  await using server = await Portolan.start(
    (port) =>
      `.:${port("dns")} {\n bind 127.0.0.1\n multisocket 2\n prometheus 127.0.0.1:${port("metrics")}\n careless\n whoami\n}\n`,
    { files: { "careless.ts": careless }, args: ["-plugin", "careless:./careless.ts"] },
  );
  // The kernel chooses the thread by the client's port.
  for (let round = 0; round < 16; round++)
    for (const name of ["timer", "promise", "nothing"])
      assert.equal((await ask(server, `${name}.example`)).rcode, 0, name);
  await server.waitForLog(/\[ERROR\] plugin\/careless: failed outside a query: thrown later/);
  await server.waitForLog(/\[ERROR\] plugin\/careless: failed outside a query: rejected later/);
  await server.waitForLog(
    /\[ERROR\] an added plugin: failed outside a query: a promise was rejected with undefined/,
  );
  assert.doesNotMatch(server.log, /its thread|\[FATAL\]/);
  const { body } = await server.page("metrics", "/metrics");
  assert.match(body, /^portolan_plugin_panics_total\{plugin="careless"\} \d+$/m);
  assert.match(body, /^portolan_plugin_panics_total\{plugin="unknown"\} \d+$/m);
});

test("a Corefile adds one itself, changes it, and drops it, by reloads", async () => {
  const withOptions = (options: string, line: string) => (port: PortOf) =>
    `${options}.:${port("dns")} {\n bind 127.0.0.1\n errors\n ${line}\n whoami\n}\n`;
  await using server = await Portolan.start(
    withOptions("{\n plugin greet ./greet.ts\n}\n", "greet hello.example"),
    {
      files: { "greet.ts": greeting("by option"), "other.ts": greeting("from elsewhere") },
    },
  );
  assert.match(await greetingOf(server), /"by option"/);
  const other = withOptions("{\n plugin greet ./other.ts after errors\n}\n", "greet hello.example");
  assert.match(await server.reload(other), /Reloading complete/);
  assert.match(await greetingOf(server), /"from elsewhere"/);
  assert.match(await server.reload(withOptions("", "greet hello.example")), /Unknown directive 'greet'/);
  assert.match(await greetingOf(server), /"from elsewhere"/);
  assert.match(await server.reload(withOptions("", "")), /Reloading complete/);
  assert.equal(await greetingOf(server), "");
});

test("on several threads: each loads the plugin, and its faults cost its own queries", async () => {
  const faulty = `import { bareDirective, definePlugin } from "portolan/plugin";
import { parseRecord } from "portolan/dns";
import { threadId } from "node:worker_threads";
export default definePlugin({
  name: "faulty",
  summary: "Says which thread answers, and fails in several ways.",
  config: bareDirective(),
  create: () => ({
    started: () => void setInterval(() => undefined, 1_000),
    handle(query) {
      switch (query.name.labelText(0)) {
        case "throws": throw new Error("thrown");
        case "hangs": return new Promise(() => {});
        case "rubbish": return { kind: "reply" };
        default: return query.reply({ answer: [parseRecord(\`\${query.name} 0 IN TXT "\${threadId}"\`)] });
      }
    },
  }),
});
`;
  await using server = await Portolan.start(
    (port) =>
      `{\n plugin faulty ./faulty.ts\n}\n.:${port("dns")} {\n bind 127.0.0.1\n multisocket 2\n prometheus 127.0.0.1:${port("metrics")}\n errors\n faulty\n}\n`,
    { files: { "faulty.ts": faulty }, args: ["-plugin-timeout", "100ms"] },
  );
  const threads = new Set<string>();
  // The kernel shares out by the client's port, and each question has a new one.
  for (let turn = 0; turn < 200 && threads.size < 2; turn++) {
    const { answer } = await ask(server, "who.example", "TXT");
    threads.add(answer.map(formatRecord).join());
  }
  assert.equal(threads.size, 2);
  const faults = ["throws", "hangs", "rubbish"].flatMap((name) => new Array<string>(8).fill(name));
  const rcodes = await Promise.all(faults.map(async (name) => (await ask(server, `${name}.example`)).rcode));
  assert.deepEqual(new Set(rcodes), new Set([2]));
  const { body } = await server.page("metrics", "/metrics");
  const counted = (name: string): number =>
    Number(new RegExp(`^${name}\\{plugin="faulty"\\} (\\d+)$`, "m").exec(body)?.[1]);
  // More than that where a datagram was sent again.
  assert.ok(counted("portolan_plugin_panics_total") >= 16, body);
  assert.ok(counted("portolan_plugin_overruns_total") >= 8, body);
  writeFileSync(join(server.folder, "faulty.ts"), faulty.replace("threadId}", "threadId} anew"));
  assert.match(await server.reload(), /Reloading complete/);
  const { answer } = await ask(server, "who.example", "TXT");
  assert.match(answer.map(formatRecord).join(), /anew/);
  // Its timers are never cleared, which holds nothing up.
  assert.deepEqual(await server.stop(), { code: 0, signal: null });
});

test("a plugin that cannot be used refuses the start, and check finds it", async (t) => {
  const cwd = makeTree(t, {
    "etc/Corefile": ".:0 {\n    greet hello.example\n}\n",
    "etc/plugin.cfg": "greet:./greet.ts\n",
  });
  const served = await runPortolan(["-conf", "etc/Corefile"], { cwd });
  assert.equal(served.code, 1);
  const expected = `etc/Corefile:2:5: error: cannot load plugin "greet" from "./greet.ts": there is no file ${join(cwd, "etc", "greet.ts")}\n`;
  assert.ok(served.errors.startsWith(expected), served.errors);
  const checked = await runPortolan(["check", "etc/Corefile"], { cwd });
  assert.equal(checked.code, 1);
  assert.ok(checked.output.startsWith(expected), checked.output);
  writeFileSync(join(cwd, "etc", "greet.ts"), greeting("hello"));
  assert.equal((await runPortolan(["check", "etc/Corefile"], { cwd })).code, 0);
});

test("-plugins lists the plugins in chain order, with where each comes from", async (t) => {
  const cwd = makeTree(t, {
    "other.cfg": "log:log\ngreet:greet-package\nwhoami:whoami\n",
    Corefile: "{\n plugin last ./last.ts after greet\n}\n. {\n last\n}\n",
  });
  const listed = await runPortolan(
    ["-plugin-cfg", "other.cfg", "-plugin", "b:./b.js@before=log", "-plugins"],
    { cwd },
  );
  assert.equal(
    listed.output,
    [
      `b       ./b.js in ${cwd} (-plugin)`,
      "log     built in",
      `greet   greet-package in ${cwd} (other.cfg)`,
      `last    ./last.ts in ${cwd} (Corefile:2)`,
      "whoami  built in",
      "",
    ].join("\n"),
  );
});

test("a command line or list that cannot be used", async (t) => {
  const cwd = makeTree(t, { "bad.cfg": "log log\n", "binary.cfg": "\0" });
  for (const [args, code, message] of [
    [
      ["-plugin", "greet"],
      2,
      'invalid value "greet" for flag -plugin: expected name:module, or name:module@before=OTHER, or name:module@after=OTHER\n',
    ],
    [
      ["-plugin", "a:./x.ts@around=log"],
      2,
      'invalid value "a:./x.ts@around=log" for flag -plugin: expected ',
    ],
    [["-plugin", "a:./x.ts@before="], 2, 'invalid value "a:./x.ts@before=" for flag -plugin: expected '],
    [
      ["-plugin", "greet:./x.ts@before=whoamy", "-plugins"],
      1,
      'cannot place the plugin "greet": there is no plugin "whoamy"; did you mean "whoami"?\n',
    ],
    [["-plugin-cfg", "none.cfg"], 1, "cannot read the list of plugins none.cfg: no such file\n"],
    [["-plugin-cfg", "."], 1, "cannot read the list of plugins .: is a directory\n"],
    [["-plugin-cfg", "binary.cfg"], 1, "cannot read the list of plugins binary.cfg: is not a text file\n"],
    [["-plugin-cfg", "bad.cfg"], 1, 'bad.cfg:1: expected name:module, found "log log"\n'],
    [
      ["-plugin-timeout", "soon"],
      2,
      'invalid value "soon" for flag -plugin-timeout: expected a duration such as 5s\n',
    ],
  ] as const) {
    const ended = await runPortolan(args, { cwd });
    assert.equal(ended.code, code);
    assert.ok(ended.errors.startsWith(message), ended.errors);
  }
});
