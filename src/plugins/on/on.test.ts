import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import { MemoryLog } from "../../lib/logging/log.ts";
import { ConfigRefused, PluginTest } from "../../plugin/testing.ts";
import { splitCommandLine } from "./command-line.ts";
import { type CommandEvent, EventCommand, type Spawn, StartupQueue } from "./event-command.ts";
import on from "./index.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "portolan-on-"));
});
after(() => rm(folder, { recursive: true }));

/** Runs real commands, and collects the processes. */
function harness() {
  const log = new MemoryLog();
  const queue = new StartupQueue();
  const children: ChildProcess[] = [];
  const watched: Spawn = (file, args, options) => {
    const child = spawn(file, args, options);
    children.push(child);
    return child;
  };
  const make = (event: CommandEvent, file: string, args: string[] = [], background = false): EventCommand =>
    new EventCommand(event, { file, args, background }, { log, queue, spawn: watched });
  const settled = (): Promise<void> => new Promise((resolve) => queue.add(async () => resolve()));
  /** The log lines without ids. */
  const lines = (): string[] =>
    log.lines.map((line) => line.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, "ID"));
  return { make, settled, lines, children };
}

describe("startup", () => {
  test("commands run one after the other, with unchanged arguments", async () => {
    const { make, settled, lines } = harness();
    const file = join(folder, "order");
    make("startup", "sh", ["-c", `sleep 0.05; echo "one $1" >> ${file}`, "sh", "a  b"]).started();
    make("startup", "sh", ["-c", `echo two >> ${file}`]).started();
    await settled();
    assert.equal(await readFile(file, "utf8"), "one a  b\ntwo\n");
    assert.deepEqual(lines(), [
      `[INFO] Blocking Command "sh -c sleep 0.05; echo "one $1" >> ${file} sh a  b" with ID ID`,
      `[INFO] Blocking Command "sh -c echo two >> ${file}" with ID ID`,
    ]);
  });

  test("a command in the background delays no other", async () => {
    const { make, settled, lines, children } = harness();
    make("startup", "sleep", ["30"], true).started();
    make("startup", "true").started();
    await settled();
    assert.deepEqual(lines(), [
      '[INFO] Nonblocking Command "sleep 30" with ID ID',
      '[INFO] Blocking Command "true" with ID ID',
    ]);
    const [sleeping] = children;
    assert.ok(sleeping !== undefined && sleeping.exitCode === null);
    sleeping.kill();
    await once(sleeping, "exit");
  });

  test("commands that have not started when the configuration ends are dropped", async () => {
    const { make, children } = harness();
    const first = make("startup", "sleep", ["0.05"]);
    first.started();
    make("startup", "true").started();
    await Promise.resolve();
    first.stop();
    const [sleeping] = children;
    assert.ok(sleeping !== undefined);
    await once(sleeping, "close");
    assert.equal(children.length, 1);
  });

  test("only failures are logged", async () => {
    const { make, settled, lines } = harness();
    make("startup", "false").started();
    make("startup", "sh", ["-c", "kill -TERM $$"]).started();
    make("startup", "/nowhere/command", [], true).started();
    make("startup", "/nowhere/command").started();
    await settled();
    assert.deepEqual(
      lines().filter((line) => line.startsWith("[ERROR]")),
      [
        `[ERROR] error on 'startup' hook: command "false" with ID ID ended with status 1`,
        `[ERROR] error on 'startup' hook: command "sh -c kill -TERM $$" with ID ID was killed by SIGTERM`,
        `[ERROR] error on 'startup' hook: command "/nowhere/command" with ID ID cannot be run: spawn /nowhere/command ENOENT`,
        `[ERROR] error on 'startup' hook: command "/nowhere/command" with ID ID cannot be run: spawn /nowhere/command ENOENT`,
      ],
    );
  });
});

test("a command that cannot be started is a failure like others", async () => {
  const { make, settled, lines } = harness();
  make("startup", "true", ["\0"]).started();
  await settled();
  assert.match(
    lines()[1] ?? "",
    /^\[ERROR\] error on 'startup' hook: .* cannot be run: .*without null bytes/,
  );
});

describe("shutdown", () => {
  test("waits for the command", async () => {
    const { make, lines, children } = harness();
    const command = make("shutdown", "sh", ["-c", "sleep 0.05; exit 3"]);
    command.started();
    assert.equal(children.length, 0);
    await command.shutdown();
    assert.equal(children[0]?.exitCode, 3);
    assert.match(lines()[1] ?? "", /error on 'shutdown' hook: .* ended with status 3/);
  });

  test("other events run nothing", async () => {
    const { make, settled, children } = harness();
    await make("startup", "true").shutdown();
    const renewal = make("certrenew", "true");
    renewal.started();
    await renewal.shutdown();
    await settled();
    assert.equal(children.length, 0);
  });
});

describe("configuration", () => {
  test("each directive is a command", () => {
    const plugin = PluginTest.of(
      on,
      "on startup sh -c \"'echo  hi' # no\"\non SHUTDOWN /bin/true &\non startup a\\&",
    );
    assert.deepEqual(plugin.configs, [
      { event: "startup", command: { file: "sh", args: ["-c", "echo  hi"], background: false } },
      { event: "shutdown", command: { file: "/bin/true", args: [], background: true } },
      { event: "startup", command: { file: "a&", args: [], background: false } },
    ]);
    assert.equal(plugin.instances.length, 3);
    assert.deepEqual(plugin.warnings, []);
  });

  test("an event that never happens is a warning", () => {
    assert.match(
      PluginTest.of(on, "on certrenew true").warnings.join(),
      /2:1: warning: 'certrenew' never occurs: the command does not run/,
    );
  });

  for (const [text, code, message] of [
    ["on", "PLUGIN_ARGUMENT_MISSING", /Wrong argument count or unexpected line ending after 'on'/],
    ["on startup", "PLUGIN_ARGUMENT_MISSING", /unexpected line ending after 'startup'/],
    ["on start true", "PLUGIN_BAD_VALUE", /2:4: error: Wrong event name or event not supported: 'start'/],
    ["on startup sh -c 'true", "ON_UNTERMINATED_QUOTE", /unterminated quote in the command: sh -c 'true/],
    ["on startup &", "ON_NO_COMMAND", /no command contained in '&'/],
    ['on startup ""', "ON_NO_COMMAND", /no command contained in ''/],
    ["on startup true {\n now\n}", "PLUGIN_UNKNOWN_PROPERTY", /unknown property 'now'/],
  ] as const) {
    test(`refuses ${JSON.stringify(text)}`, () => {
      assert.throws(
        () => PluginTest.of(on, text),
        (error) =>
          error instanceof ConfigRefused && error.codes.includes(code) && message.test(error.message),
      );
    });
  }
});

describe("words of a command line", () => {
  for (const [line, words] of [
    ["a  b\tc", ["a", "b", "c"]],
    ["'a b' \"c d\"e'f'", ["a b", "c def"]],
    ['a\\ b "\\"" \'\\\'', ["a b", '"', "\\"]],
    ["a '' \"\"", ["a", "", ""]],
    ["a #b c", ["a"]],
    ["a#b", ["a#b"]],
    ["", []],
    ["'a", undefined],
    ['"a\\"', undefined],
    ['"a\\', undefined],
    ["a\\", ["a"]],
  ] as const) {
    test(line, () => assert.deepEqual(splitCommandLine(line), words));
  }

  test("quoted words are unquoted again", () => {
    const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
    fc.assert(
      fc.property(fc.array(fc.string()), (words) => {
        assert.deepEqual(splitCommandLine(words.map(quoted).join(" ")), words);
      }),
    );
  });
});
