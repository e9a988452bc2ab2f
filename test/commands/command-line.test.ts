/** Flags, what is printed where, and exit codes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { chmodSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { makeTree } from "../../scripts/lib/test-tree.ts";
import { ask, waitForServer } from "../support/dns-client.ts";
import { freePort } from "../support/free-ports.ts";
import { Portolan, portolan, portolanWords, projectRoot, runPortolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";
import { untilTrue } from "../support/until-true.ts";

/** @returns the output so far */
function textOf(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (more: string) => {
    text += more;
  });
  return () => text;
}

const BANNER = /^Portolan-\d+\.\d+\.\d+\S*\n\w+\/\w+, node\d+\.\d+\.\d+, [\w-]+\n$/;

const compareText = (one: string, other: string): number => (one < other ? -1 : 1);

const FEW_AT_ONCE = { concurrency: 3 };

describe("flags that answer at once", FEW_AT_ONCE, () => {
  for (const flag of ["-version", "--version", "-version=true"]) {
    test(`${flag} prints the version`, async () => {
      const { code, output, errors } = await runPortolan([flag]);
      assert.match(output, BANNER);
      assert.deepEqual([code, errors], [0, ""]);
    });
  }

  test("-plugins prints the plugins of plugin.cfg, in their order", async (t) => {
    const { code, output } = await runPortolan(["-plugins"], { cwd: makeTree(t, {}) });
    const list = readFileSync(join(projectRoot, "src/plugins/plugin.cfg"), "utf8");
    const names = Array.from(list.matchAll(/^(\w+):/gm), ([, name = ""]) => name);
    assert.deepEqual(output.match(/^\S+/gm), names);
    assert.deepEqual(output.match(/^\S+ +built in$/gm)?.length, names.length);
    assert.equal(code, 0);
  });

  for (const flag of ["-h", "--help"]) {
    test(`${flag} prints the usage`, async () => {
      const { code, output, errors } = await runPortolan([flag]);
      for (const name of ["-conf", "-dns.port", "-p ", "-pidfile", "-plugins", "-version", "-quiet"])
        assert.ok(`${output}${errors}`.includes(name), `no word of ${name}`);
      assert.equal(code, 0);
    });
  }
});

describe("command lines that cannot be carried out", FEW_AT_ONCE, () => {
  for (const [args, code, message] of [
    [["-nonsense"], 2, /not defined: -nonsense\n.*Usage:/s],
    [["-conf"], 2, /needs an argument: -conf/],
    [["-dns.port", "dns"], 2, /invalid value "dns" for flag -dns\.port/],
    [["-p", "65536"], 2, /invalid value "65536"/],
    [["-quiet=perhaps"], 2, /invalid boolean value "perhaps"/],
    [["-quiet", "a", "b"], 1, /^extra command line arguments: \[a b\]\n$/],
  ] as const) {
    test(`portolan ${args.join(" ")}: exit code ${code}`, async () => {
      const result = await runPortolan(args);
      assert.match(result.errors, message);
      assert.deepEqual([result.code, result.output], [code, ""]);
    });
  }
});

describe("where the Corefile comes from", FEW_AT_ONCE, () => {
  /** Starts the program in a folder with these files and checks that it answers at this port, then ends it. */
  async function checkServes(
    t: Parameters<typeof makeTree>[0],
    files: Record<string, string>,
    args: readonly string[],
    port: number,
    input?: string,
  ): Promise<string> {
    const cwd = makeTree(t, files);
    await using program = portolan(args, { cwd, ...(input !== undefined && { input }) });
    const server = { address: "127.0.0.1", port };
    assert.ok(await waitForServer(server, () => program.hasEnded), program.describe());
    assert.equal((await ask(server, "a.example")).additional.length, 2);
    assert.deepEqual(await program.stop(), { code: 0, signal: null });
    assert.equal(program.errors, "");
    return program.output;
  }
  const whoami = (port: number): string => `.:${port} {\n  whoami\n}\n`;

  for (const flag of ["-conf DNS.conf", "--conf DNS.conf", "-conf=DNS.conf", "--conf=./DNS.conf"]) {
    test(flag, async (t) => {
      const port = await freePort();
      await checkServes(t, { "DNS.conf": whoami(port) }, flag.split(" "), port);
    });
  }

  test("standard input with -conf stdin", async (t) => {
    const port = await freePort();
    await checkServes(t, { Corefile: "rubbish {" }, ["-conf", "stdin"], port, whoami(port));
  });

  test("the file Corefile of the working directory", async (t) => {
    const port = await freePort();
    await checkServes(t, { Corefile: whoami(port) }, [], port);
  });

  for (const [title, files, args] of [
    ["no Corefile anywhere", {}, []],
    ["an empty Corefile", { Corefile: "# nothing\n" }, []],
    ["a Corefile of snippets alone", { Corefile: "(a) {\n  errors\n}\n" }, ["-conf", "Corefile"]],
  ] as const) {
    test(`${title}: the built-in one, whoami and log`, async (t) => {
      const port = await freePort();
      const output = await checkServes(t, files, [...args, "-dns.port", String(port)], port);
      assert.match(output, new RegExp(`^\\.:${port}\\n`, "m"));
      assert.match(output, /^\[INFO\] 127\.0\.0\.1:\d+ - \d+ "A IN a\.example\. udp /m);
    });
  }

  for (const flag of ["-dns.port", "-p"]) {
    test(`${flag} is the port of keys without one, and of no others`, async (t) => {
      const [port, other] = [await freePort(), await freePort()];
      const corefile = `example {\n  whoami\n}\nother.example:${other} {\n  whoami\n}\n`;
      const output = await checkServes(t, { Corefile: corefile }, [flag, String(port)], port);
      assert.ok(output.includes(`example.:${port}\n`), output);
      assert.ok(output.includes(`other.example.:${other}\n`), output);
    });
  }

  test("a file that is not there: exit code 1 and its name", async () => {
    const { code, errors, output } = await runPortolan(["-conf", "/nowhere/Corefile"]);
    assert.match(errors, /^[^\n]*\/nowhere\/Corefile[^\n]*no such file[^\n]*\n$/);
    assert.deepEqual([code, output], [1, ""]);
  });

  test("a directory: exit code 1 and what it is", async () => {
    const { code, errors } = await runPortolan(["-conf", projectRoot]);
    assert.match(errors, /directory/);
    assert.equal(code, 1);
  });
});

describe("what is printed at start", FEW_AT_ONCE, () => {
  test("zones by address and name, warnings about unusual ones, and the version", async () => {
    const port = await freePort();
    const corefile = `b.example:${port} a.example:${port} {
      bind 127.0.0.1
      whoami
    }
    _x.example:${port} 10.0.0.0/8:${port} {
      bind 127.0.0.1
      whoami
    }`;
    await using program = portolan(["-conf", "stdin"], { input: corefile });
    await program.waitForOutput(/node\d/);
    await program.stop();
    const at = `:${port} on 127.0.0.1`;
    assert.deepEqual(program.output.split("\n").slice(0, 5), [
      `10.in-addr.arpa.${at}`,
      'Warning: Domain "_x.example." does not follow RFC1035 preferred syntax',
      `_x.example.${at}`,
      `a.example.${at}`,
      `b.example.${at}`,
    ]);
    assert.match(`${program.output.split("\n").slice(5, 7).join("\n")}\n`, BANNER);
  });

  test("nothing with -quiet", async () => {
    await using server = await Portolan.start((port) => `.:${port("dns")} {\n  whoami\n}\n`, {
      args: ["-quiet"],
    });
    await server.stop();
    assert.equal(server.log, "[INFO] SIGTERM: Shutting down servers then terminating\n");
  });

  test("the process id into -pidfile, for all to read", async () => {
    await using server = await Portolan.start((port) => `.:${port("dns")} {\n  whoami\n}\n`, {
      args: ["-pidfile", "portolan.pid"],
    });
    await server.waitForLog(/node\d/);
    const file = join(server.folder, "portolan.pid");
    assert.equal(readFileSync(file, "utf8"), `${server.program.pid}\n`);
    assert.equal(statSync(file).mode & 0o777, 0o644 & ~process.umask());
  });

  test("an error where the pidfile cannot be written, and the server runs", async () => {
    await using server = await Portolan.start((port) => `.:${port("dns")} {\n  whoami\n}\n`, {
      args: ["-pidfile", "/nowhere/portolan.pid"],
    });
    await server.waitForLog(/\[ERROR\].*\/nowhere\/portolan\.pid/);
    assert.equal((await ask(server, "a.example")).additional.length, 2);
  });
});

describe("a Corefile that cannot be run: exit code 1, a diagnostic, and nothing listens", FEW_AT_ONCE, () => {
  const block = (...lines: readonly string[]) =>
    `.:PORT {\n${lines.map((line) => `    ${line}\n`).join("")}}\n`;
  for (const [title, corefile, place, message] of [
    ["a block without end", ".:PORT {\n    whoami\n", "1:9", /Unexpected EOF/],
    ["a brace too many", "whoami\n}\n}\n", "2:1", /./],
    ["an unknown directive", block("whoami", "frobnicate"), "3:5", /Unknown directive 'frobnicate'/],
    ["a misspelt directive", block("whoami", "forwrad . 127.0.0.1"), "3:5", /did you mean 'forward'/],
    ["an unknown option", block("cache 30 {", "    sucess 10", "}"), "3:9", /did you mean 'success'/],
    ["a bad value", block("cache 30 {", "    success many", "}"), "3:17", /./],
    ["a bad argument", block("log . {", "    class nonsense", "}"), "3:15", /invalid Class: nonsense/],
    ["a bad address", block("forward . 300.1.1.1"), "2:15", /./],
    ["a zone twice", `${block("whoami")}${block("whoami")}`, "4:1", /already defined/],
    [
      "a file to import that is not there",
      "import /nowhere/*.d\nimport /nowhere/x\n",
      "2:8",
      /File to import not found/,
    ],
    [
      "a manifest folder that is not there",
      block("kubernetes cluster.local {", "    manifests nowhere", "}"),
      "",
      /nowhere/,
    ],
  ] as const) {
    test(title, async (t) => {
      const port = await freePort();
      // Free ports have five digits: columns count on them.
      const cwd = makeTree(t, { Corefile: corefile.replaceAll("PORT", String(port)) });
      const { code, output, errors } = await runPortolan(["-conf", "Corefile"], { cwd });
      assert.match(errors, message);
      if (place !== "") assert.ok(errors.includes(`Corefile:${place}: error: `), errors);
      assert.deepEqual([code, output], [1, ""]);
    });
  }

  test("all faults are told at once, each with its place", async (t) => {
    const corefile = ".:1053 {\n  forwrad . 127.0.0.1\n  errors nowhere\n  cache {\n    sucess 10\n  }\n}\n";
    const cwd = makeTree(t, { Corefile: corefile });
    const { code, errors } = await runPortolan([], { cwd });
    assert.deepEqual(
      Array.from(errors.matchAll(/^Corefile:(\d+):\d+: error:/gm), ([, line = ""]) => line).sort(compareText),
      ["2", "3", "5"],
    );
    assert.equal(code, 1);
  });

  test("a fault in an imported file is told with that file", async (t) => {
    const cwd = makeTree(t, {
      Corefile: ".:1053 {\n  import parts/*.conf\n}\n",
      "parts/a.conf": "errors\nfrobnicate\n",
    });
    const { code, errors } = await runPortolan([], { cwd });
    assert.match(errors, /parts\/a\.conf:2:1: error: Unknown directive 'frobnicate'/);
    assert.equal(code, 1);
  });
});

describe("an address that cannot be had: exit code 1, and one line with address and reason", () => {
  test("the UDP port is taken", async (t) => {
    const taken = createSocket("udp4");
    t.after(() => taken.close());
    // Any other port may be in use over TCP, which is tried first.
    const port = await freePort();
    taken.bind(port, "127.0.0.1");
    await once(taken, "listening");
    await checkRefused(`.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`, `udp 127.0.0.1:${port}`, /in use/);
  });

  test("the TCP port is taken, while another block could listen", async (t) => {
    const taken = createServer().listen(0, "127.0.0.1");
    t.after(() => taken.close());
    await once(taken, "listening");
    const address = taken.address();
    assert.ok(address !== null && typeof address === "object");
    const { port } = address;
    const other = await freePort();
    const corefile = `a.example:${other} b.example:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`;
    await checkRefused(corefile, `tcp 127.0.0.1:${port}`, /in use/);
  });

  test("an endpoint's HTTP port is taken", async (t) => {
    const taken = createServer().listen(0, "127.0.0.1");
    t.after(() => taken.close());
    await once(taken, "listening");
    const address = taken.address();
    assert.ok(address !== null && typeof address === "object");
    const corefile = `.:${await freePort()} {\n  health 127.0.0.1:${address.port}\n}\n`;
    // With the directive's place and line.
    await checkRefused(corefile, `127.0.0.1:${address.port}`, /^stdin:2:10: error: .*in use/, 3);
  });

  test("the machine has no such address", async () => {
    await checkRefused(
      `.:${await freePort()} {\n  bind 192.0.2.77\n  whoami\n}\n`,
      "192.0.2.77:",
      /no such address/,
    );
  });

  test("standard input that comes late, and in pieces", async () => {
    const port = await freePort();
    const text = `.:${port} {\n  bind 127.0.0.1\n  whoami\n}\n`;
    const [node = "", ...words] = portolanWords("-conf", "stdin");
    const child = spawn(node, words, { stdio: ["pipe", "pipe", "pipe"] });
    const printed = textOf(child.stdout);
    const errors = textOf(child.stderr);
    for (const piece of [text.slice(0, 9), text.slice(9)]) {
      await delay(500);
      child.stdin.write(piece);
    }
    child.stdin.end();
    await untilTrue(() => printed().includes("Portolan-") || child.exitCode !== null, {
      what: "the version in the log",
      log: printed,
    });
    child.kill("SIGTERM");
    assert.deepEqual([...(await once(child, "close")), errors()], [0, null, ""]);
  });

  async function checkRefused(corefile: string, address: string, reason: RegExp, lines = 1): Promise<void> {
    const { code, output, errors } = await runPortolan(["-conf", "stdin"], { input: corefile });
    assert.ok(errors.includes(address), errors);
    assert.match(errors, reason);
    assert.equal(errors.trimEnd().split("\n").length, lines, errors);
    assert.deepEqual([code, output], [1, ""]);
  }

  /**
   * As root: the port below the ports that every user may bind, and the words in front that switch to an unprivileged
   * user.
   */
  const firstOpenPort = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "latin1"));
  const isRoot = process.getuid?.() === 0;
  const asNobody = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
  test("no right to bind the port", {
    skip: firstOpenPort <= 700 && "any user may bind any port here",
  }, async (t) => {
    const corefile = ".:700 {\n  bind 127.0.0.1\n  whoami\n}\n";
    const cwd = makeTree(t, { Corefile: corefile });
    chmodSync(cwd, 0o755);
    const [command, ...args] = [...asNobody, process.execPath, join(projectRoot, "bin", "portolan")];
    const { code: readable } = await run(command, [...args, "-version"], { cwd });
    if (readable !== 0) return t.skip("an unprivileged user cannot read this folder");
    const { code, output, errors } = await run(command, args, { cwd });
    assert.match(errors, /^cannot listen on \w+ 127\.0\.0\.1:700: no right to bind[^\n]*\n$/);
    assert.deepEqual([code, output], [1, ""]);
  });
});
